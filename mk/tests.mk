# Tests. tests/unit/<room>/test_*.c: one cmocka program each, linked with every pure room and the room it tests.
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
TEST_ROOMS := http loop store topo recipe dcore acore plan wire model base
TEST_LIBS := -lcmocka -lmicrohttpd -lsystemd -lcurl -ljson-c -lsqlite3 -lfyaml -lpcre2-8 -lhwloc -lnuma -lgnutls -lm

$(BUILD)/tests/unit/%: tests/unit/%.c
	@mkdir -p $(@D)
	@$(MAKE) --no-print-directory BUILD=$(BUILD) $(call lib,$(ROOMS_$(notdir $(@D))))
	$(CC) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(wildcard $(call lib,$(TEST_ROOMS))) -Wl,--end-group $(TEST_LIBS)

# make unit [T=base]: builds and runs the unit tests (of one room)
.PHONY: unit
unit: $(if $(T),$(filter $(BUILD)/tests/unit/$(T)/%,$(UNIT_BIN)),$(UNIT_BIN))
	@tests/run-unit $^
