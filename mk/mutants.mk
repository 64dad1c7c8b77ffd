# make mutants: one-line sabotages, each caught by the simulator or an end-to-end test
# (tests/mutants/mutants.py)
.PHONY: mutants
mutants: deps-test
	@/usr/bin/python3 tests/mutants/mutants.py
