# make lint: seconds, every step is an error when it finds something; one reads the objects of a build. make lint-deep: minutes.
.PHONY: lint lint-deep
lint: deps-lint all
	@BUILD=$(BUILD) tests/lint/run fast
lint-deep: deps-lint
	@tests/lint/run deep
