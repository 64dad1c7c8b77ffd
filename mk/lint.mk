# make lint: seconds, every step is an error when it finds something; one reads the objects of a build. make lint-deep: minutes.
# make format sets the C of product and tests as .clang-format says, and Python as tests/lint/black
# does; lint only looks.
.PHONY: lint lint-deep format
format: deps-lint
	@clang-format-14 -i $$(git ls-files 'lib/*.[ch]' 'daemon/*.[ch]' 'agent/*.[ch]' 'cli/*.[ch]' 'tests/*.[ch]')
	@tests/lint/black
lint: deps-lint all
	@BUILD=$(BUILD) tests/lint/run fast
lint-deep: deps-lint
	@tests/lint/run deep
