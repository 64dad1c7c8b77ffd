# make lint: seconds, every step is an error when it finds something. make lint-deep: minutes.
.PHONY: lint lint-deep
lint: deps-lint
	@tests/lint/run fast
lint-deep: deps-lint
	@tests/lint/run deep
