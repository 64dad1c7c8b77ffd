# make bench [B="launch restart"]: one JSON line per figure; peers (Slurm, Open MPI, torchrun) are measured in the same run when they are installed
.PHONY: bench
bench: all fakes
	@BUILD=$(BUILD) tests/bench/bench.py $(B)
