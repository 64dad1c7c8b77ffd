# make bench [B="launch restart"]: one JSON line per figure; peers (Slurm, Open MPI, torchrun) are measured in the same run when they are installed
.PHONY: bench
bench: all fakes $(BUILD)/tests/bench/load
	@BUILD=$(BUILD) tests/bench/bench.py $(B)
$(BUILD)/tests/bench/load: tests/bench/load.c
	$(call say,LINK $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< -lmicrohttpd
