# make lint: seconds, every step is an error when it finds something; one reads the objects of a build. make lint-deep: minutes.
# make format sets the C of product and tests as .clang-format says; lint only looks.
.PHONY: lint lint-deep format
format: deps-lint
	@clang-format-14 -i $$(git ls-files 'lib/*.[ch]' 'daemon/*.[ch]' 'agent/*.[ch]' 'cli/*.[ch]' 'tests/*.[ch]')
lint: deps-lint all
	@BUILD=$(BUILD) tests/lint/run fast
lint-deep: deps-lint
	@tests/lint/run deep
