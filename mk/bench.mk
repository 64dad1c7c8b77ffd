# make bench [B="launch restart"]: one JSON line per figure; peers (Slurm, Open MPI, torchrun) are
# measured in the same run when they are installed
BENCH_ROWS := $(filter-out planner classify,$(B))
BENCH_PLANNER := $(if $(B),$(filter planner,$(B)),all)
BENCH_CLASSIFY := $(if $(B),$(filter classify,$(B)),all)
.PHONY: bench
bench: all fakes $(BUILD)/tests/bench/load $(BUILD)/tests/bench/plan $(BUILD)/tests/bench/planner \
	$(BUILD)/tests/bench/lines $(BUILD)/tests/bench/core $(BUILD)/tests/bench/swarm/swarm \
	$(BUILD)/tests/bench/fan
	@$(if $(BENCH_ROWS)$(if $(B),,all),BUILD=$(BUILD) tests/bench/bench.py $(BENCH_ROWS))
	@$(if $(BENCH_PLANNER),BUILD=$(BUILD) tests/bench/planner.py)
	@$(if $(BENCH_PLANNER),BUILD=$(BUILD) tests/bench/planner_search.py)
	@$(if $(BENCH_CLASSIFY),BUILD=$(BUILD) tests/bench/classify.py)
$(BUILD)/tests/bench/load: tests/bench/load.c
	$(call say,LINK $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< -lmicrohttpd
# the floor of a launch, static as its rank is (tests/fake/tiny.c)
$(BUILD)/tests/bench/fan: tests/bench/fan.c
	$(call say,LINK $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -static -no-pie -o $@ $<
$(BUILD)/tests/bench/plan: $(BUILD)/tests/bench/plan.o $(call lib,acore wire model base)
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(call lib,acore wire model base) \
		-Wl,--end-group $(LIBS_moe-stepd)
$(BUILD)/tests/bench/planner: $(BUILD)/tests/bench/planner.o $(call lib,plan recipe model base)
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(call lib,plan recipe model base) \
		-Wl,--end-group -ljson-c -lfyaml -lpcre2-8 -lm

$(BUILD)/tests/bench/lines: $(BUILD)/tests/bench/lines.o $(call lib,recipe acore wire model base)
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group \
		$(call lib,recipe acore wire model base) -Wl,--end-group -ljson-c -lfyaml \
		-lpcre2-8 -lm
# what one input costs the controller's core
$(BUILD)/tests/bench/core: $(BUILD)/tests/bench/core.o $(call lib,recipe dcore plan wire model base)
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group \
		$(call lib,recipe dcore plan wire model base) -Wl,--end-group -ljson-c -lfyaml \
		-lpcre2-8 -lm
# a fleet of emulated agents (tests/bench/swarm/swarm.h)
SWARM_SRC := $(wildcard tests/bench/swarm/*.c)
$(BUILD)/tests/bench/swarm/swarm: $(call obj,$(SWARM_SRC)) $(call lib,wire model base)
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(call obj,$(SWARM_SRC)) -Wl,--start-group \
		$(call lib,wire model base) -Wl,--end-group -ljson-c -lm
