# make quickstart: packages, build, then tests/quickstart: a local cluster that trains, loses a rank
# and recovers
.PHONY: quickstart
quickstart: deps
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) tests/quickstart
