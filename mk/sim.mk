# The simulator: make sim SEED=n (one run; STEPS=1 shows every step), make sim-many SEEDS=1-300
# (fails when a fault or a transition never happened)
# (its controller is production's; the seams are its own, the disk that of tests/unit/seams)
SIM_SRC := $(wildcard tests/sim/*.c) tests/unit/asserting.c tests/hangs/recorded.c \
	$(addprefix tests/unit/seams/,disk.c files.c vfs.c streams.c people.c) \
	$(filter-out daemon/main.c daemon/agent_answer.c daemon/child.c,$(SRC_moed)) \
	$(addprefix agent/,cgroup.c fence.c journal.c link.c paths.c queue.c start.c step_dir.c \
		step_effect.c step_entry.c step_left.c step_talk.c sweep.c token.c \
		stepd/entry.c stepd/journal.c)
SIM_ROOMS := recipe dcore acore plan wire model base
$(BUILD)/sim: $(call obj,$(SIM_SRC)) $(call lib,$(ROOMS_moed))
	$(CC) $(LDFLAGS_ALL) -Wl,--wrap=job_row_find -o $@ $(call obj,$(SIM_SRC)) \
		-Wl,--start-group $(call lib,$(ROOMS_moed)) -Wl,--end-group -lcmocka $(LIBS_moed)

SEED ?= 1
SEEDS ?= 1-300
.PHONY: sim sim-many sim-branches
sim: $(BUILD)/sim
	@$(BUILD)/sim --seed $(SEED) $(if $(STEPS),--steps)
sim-many: $(BUILD)/sim
	@$(BUILD)/sim --seeds $(SEEDS)
# which branches of the rules no seed met (docs/reliability.md)
sim-branches:
	@/usr/bin/python3 tests/sim/branches.py $(if $(LIST),--list) $(SEEDS)

# Hangs and what looks like them (docs/reliability.md): build/hangs [--seed N] [--steps N]
HANGS_SRC := $(wildcard tests/hangs/*.c) tests/unit/asserting.c
$(BUILD)/hangs: $(call obj,$(HANGS_SRC)) $(call lib,$(SIM_ROOMS))
	$(CC) $(LDFLAGS_ALL) -o $@ $(call obj,$(HANGS_SRC)) -Wl,--start-group \
		$(call lib,$(SIM_ROOMS)) -Wl,--end-group -ljson-c -lfyaml -lpcre2-8 -lm
.PHONY: hangs
hangs: $(BUILD)/hangs
	@$(BUILD)/hangs --seed $(SEED) --steps 1000000

# A month of a large cluster (docs/reliability.md): build/campaign [--seed N] [--days N] ...
CAMPAIGN_SRC := $(wildcard tests/campaign/*.c) tests/unit/asserting.c
$(BUILD)/campaign: $(call obj,$(CAMPAIGN_SRC)) $(call lib,$(SIM_ROOMS))
	$(CC) $(LDFLAGS_ALL) -o $@ $(call obj,$(CAMPAIGN_SRC)) -Wl,--start-group \
		$(call lib,$(SIM_ROOMS)) -Wl,--end-group -ljson-c -lfyaml -lpcre2-8 -lm
.PHONY: campaign
campaign: $(BUILD)/campaign
	@$(BUILD)/campaign --seed $(SEED)

# Each kind of failure in each phase of a job (docs/scenarios.md): build/scenarios [KIND] [PHASE]
SCENARIOS_SRC := $(wildcard tests/scenarios/*.c) tests/unit/asserting.c tests/signatures.c \
	$(addprefix tests/unit/dcore/,world.c world_check.c world_health.c toy.c)
$(BUILD)/scenarios: $(call obj,$(SCENARIOS_SRC)) $(call lib,$(SIM_ROOMS))
	$(CC) $(LDFLAGS_ALL) -o $@ $(call obj,$(SCENARIOS_SRC)) -Wl,--start-group \
		$(call lib,$(SIM_ROOMS)) -Wl,--end-group -lcmocka -ljson-c -lfyaml -lpcre2-8 -lm
.PHONY: scenarios
scenarios: $(BUILD)/scenarios
	@$(BUILD)/scenarios
