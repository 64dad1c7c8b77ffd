# Tests. tests/unit/ROOM/test_*.c: one cmocka program each, linked with the archives that its room
# may use; other *.c there are linked into each program of the room. Only those archives are built,
# so that `make unit T=base` works whatever state the other rooms are in.
UNIT_ROOMS_base := base
UNIT_ROOMS_model := model base
UNIT_ROOMS_wire := wire model base
UNIT_ROOMS_recipe := recipe model base
UNIT_ROOMS_plan := plan recipe model base
UNIT_ROOMS_loop := loop base
UNIT_ROOMS_http := http loop wire model base
UNIT_ROOMS_store := store model base
UNIT_ROOMS_topo := topo model base
UNIT_ROOMS_dcore := recipe dcore plan wire model base
UNIT_ROOMS_acore := acore wire model base
UNIT_ROOMS_health := recipe acore dcore plan wire model base
UNIT_ROOMS_engine := recipe acore wire model base
UNIT_ROOMS_daemon := $(ROOMS_moed)
UNIT_ROOMS_seams := $(ROOMS_moed)
UNIT_ROOMS_seams/store := store base
UNIT_ROOMS_seams/stepd := $(ROOMS_moe-stepd)
UNIT_ROOMS_seams/agent := $(ROOMS_moe-agent)
UNIT_ROOMS_agent := $(ROOMS_moe-agent)
UNIT_ROOMS_stepd := $(ROOMS_moe-stepd)
UNIT_ROOMS_cli := $(ROOMS_moectl)
UNIT_DIRS := base model wire recipe plan loop http store topo dcore acore health engine daemon \
	seams seams/store seams/stepd seams/agent agent stepd cli
# the shells' own objects, without main()
UNIT_SHELL_daemon := $(filter-out daemon/main.c,$(SRC_moed))
# its seams are the test's own (docs/decisions/010-seams.md)
UNIT_SHELL_seams := $(filter-out daemon/main.c daemon/agent_answer.c,$(SRC_moed))
UNIT_SHELL_seams/stepd := $(filter-out agent/stepd/main.c agent/stepd/wake.c \
	agent/stepd/process.c,$(SRC_moe-stepd))
UNIT_SHELL_seams/agent := $(filter-out agent/main.c agent/controller.c agent/helper.c \
	agent/reserve.c agent/unit.c agent/shutdown.c,$(SRC_moe-agent))
UNIT_SHELL_agent := $(filter-out agent/main.c,$(SRC_moe-agent))
UNIT_SHELL_stepd := $(filter-out agent/stepd/main.c,$(SRC_moe-stepd))
UNIT_SHELL_cli := $(filter-out cli/main.c,$(SRC_moectl))
# a bed of another room
UNIT_BED_dcore := tests/signatures.c
UNIT_BED_plan := tests/unit/recipe/read.c
UNIT_BED_cli := $(addprefix tests/unit/dcore/,world.c world_check.c world_health.c toy.c) \
	tests/signatures.c
UNIT_BED_seams := $(UNIT_BED_cli)
UNIT_BED_seams/stepd := $(addprefix tests/unit/seams/,time.c disk.c files.c streams.c people.c)
UNIT_BED_seams/store := $(UNIT_BED_seams/stepd) tests/unit/seams/vfs.c
UNIT_BED_seams/agent := $(UNIT_BED_seams/stepd)
TEST_LIBS := -lcmocka -lmicrohttpd -lz -lsystemd -ljson-c -lsqlite3 -lfyaml -lpcre2-8 -lhwloc \
	-lnuma -lgnutls -lm

define UNIT_rule
UNIT_BIN_$(1) := $$(patsubst %.c,$$(BUILD)/%,$$(wildcard tests/unit/$(1)/test_*.c))
UNIT_EXTRA_$(1) := \
	$$(call obj,tests/unit/asserting.c \
		$$(filter-out tests/unit/$(1)/test_%,$$(wildcard tests/unit/$(1)/*.c)) \
		$$(UNIT_BED_$(1)) $$(UNIT_SHELL_$(1)))
UNIT_BIN += $$(UNIT_BIN_$(1))
$$(UNIT_BIN_$(1)): %: %.o $$(UNIT_EXTRA_$(1)) $$(call lib,$$(UNIT_ROOMS_$(1)))
	$$(call say,LINK $$@)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$< $$(UNIT_EXTRA_$(1)) -Wl,--start-group \
		$$(call lib,$$(UNIT_ROOMS_$(1))) -Wl,--end-group $$(TEST_LIBS)
endef
$(foreach d,$(UNIT_DIRS),$(eval $(call UNIT_rule,$(d))))

# make unit [T=base | T=base/test_desc]: builds and runs the unit tests (of one room, one program);
# UNIT_WRAP: a program that runs each of them
UNIT_CHOSEN := $(if $(T),$(or $(UNIT_BIN_$(T)),$(filter %/$(T),$(UNIT_BIN))),$(UNIT_BIN))
.PHONY: unit unit-programs
unit-programs: $(UNIT_CHOSEN)
unit: unit-programs
	@[ "$(UNIT_CHOSEN)" ] || { echo \
		"make unit: T=$(T): neither a room nor ROOM/test_NAME; rooms: $(UNIT_DIRS)" >&2; \
		exit 2; }
	@UNIT_WRAP="$(UNIT_WRAP)" tests/run-unit $(UNIT_CHOSEN)

# programs that play the engine in end-to-end tests
FAKES := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fake/*.c))
FAKE_LIBRARIES := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/fake/preload/*.c))
.PHONY: fakes
RESOLVE := $(BUILD)/tests/resolve/resolve
fakes: $(FAKES) $(FAKE_LIBRARIES) $(RESOLVE)
# prints what an experiment of an engine resolves to
$(RESOLVE): $(BUILD)/tests/resolve/resolve.o $(call lib,recipe model base)
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(call lib,recipe model base) \
		-Wl,--end-group -lfyaml -lpcre2-8 -lm
# no sanitizer: it is loaded before theirs
$(FAKE_LIBRARIES): $(BUILD)/%.so: %.c
	$(call say,LINK $@)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -Wall -Wextra -D_GNU_SOURCE -shared -fPIC -o $@ $<
$(FAKES): %: %.o
	$(call say,LINK $@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $<

# the smallest rank of the benchmarks is static, so that its start costs what a start costs; what
# runs in an image of a test, because nothing else is there
ifeq ($(SAN),)
$(BUILD)/tests/fake/tiny $(BUILD)/tests/fake/ids: LDFLAGS += -static -no-pie
endif

# make check [S="unit e2e"]: installs what tests need, builds, runs every suite (or those named);
# the last line sums up
.PHONY: check
check: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) all fakes unit-programs
	@MAKE="$(MAKE) -j$(JOBS)" BUILD=$(BUILD) tests/check $(S)

# make san: everything again under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer:
# unit tests and the simulator.
# A seed takes some times as long as plain: half of the plain run's, which still holds every fault
# and transition.
SAN_FLAGS := SAN=address,undefined BUILD=build-san
SAN_SEEDS ?= 1-150
.PHONY: san vg
san: deps-lint
	@MAKE="$(MAKE) -j$(JOBS) $(SAN_FLAGS)" BUILD=build-san SIM_SEEDS=$(SAN_SEEDS) \
		UNIT_TIMEOUT=$${UNIT_TIMEOUT:-480} tests/check unit sim

# make vg: unit tests under valgrind: leaks of memory and of descriptors
vg: deps-lint
	@$(MAKE) --no-print-directory -j$(JOBS) unit UNIT_WRAP=tests/vg

# make fuzz [FUZZ_SECONDS=5]: tests/fuzz/fuzz_*.c, libFuzzer programs; a line "ROOMS: wire model
# base" in the file names the archives it needs
FUZZ_SECONDS ?= 5
FUZZ_BIN := $(patsubst tests/fuzz/%.c,build-fuzz/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
.PHONY: fuzz fuzz-programs
fuzz: deps-lint
	@$(MAKE) --no-print-directory -j$(JOBS) fuzz-programs BUILD=build-fuzz CC=clang-14 \
		SAN=fuzzer-no-link,address,undefined
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run-fuzz $(FUZZ_BIN)
fuzz-programs: $(FUZZ_BIN)
define FUZZ_rule
FUZZ_ROOMS_$(1) := $$(shell sed -n 's/.*ROOMS: *\([a-z ]*\).*/\1/p' tests/fuzz/$(1).c)
build-fuzz/tests/fuzz/$(1): build-fuzz/tests/fuzz/$(1).o $$(call lib,$$(FUZZ_ROOMS_$(1)))
	$$(call say,LINK $$@)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -fsanitize=fuzzer -o $$@ $$< -Wl,--start-group \
		$$(call lib,$$(FUZZ_ROOMS_$(1))) -Wl,--end-group \
		$$(filter-out -lcmocka,$$(TEST_LIBS))
endef
$(foreach f,$(notdir $(FUZZ_BIN)),$(eval $(call FUZZ_rule,$(f))))
