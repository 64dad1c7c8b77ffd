# make numa-vm [N="preferred bind"]: binding on a real kernel with four NUMA nodes
# (tests/numavm/run)
.PHONY: numa-vm
numa-vm: deps-numavm
	@$(MAKE) --no-print-directory -j$(JOBS) all fakes
	@BUILD=$(BUILD) tests/numavm/run $(N)
