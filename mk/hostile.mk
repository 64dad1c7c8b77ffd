# make hostile [HOSTILE_SECONDS=120] [HOSTILE_SEED=N] [HOSTILE_LEAST=100000]: sanitized daemons
# against mutated messages of every protocol (docs/reliability.md)
HOSTILE_SECONDS ?= 120
HOSTILE_LEAST ?= 100000
.PHONY: hostile
hostile: deps-test
	@$(MAKE) --no-print-directory -j$(JOBS) $(SAN_FLAGS) all fakes
	@BUILD=build-san /usr/bin/python3 tests/e2e/test_hostile.py --seconds $(HOSTILE_SECONDS) \
		--least $(HOSTILE_LEAST) $(if $(HOSTILE_SEED),--seed $(HOSTILE_SEED))
