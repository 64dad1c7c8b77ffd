/* Files of container runtimes: those that come with us, what is refused with its place, and the
 * commands that are made of them. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/runtime_file.h"

#define WHOLE \
	"runtime: 1\nname: r\nimage: [r, '{image}']\n" \
	"keep: [r, --format, '{{.A}}:{step}{{.B}}']\n" \
	"kept: [r, ps]\nrelease: [r, rm, '{step}']\n"

static void shipped(void **state)
{
	for (size_t i = 0; runtime_names[i]; i++) {
		struct runtime runtime;
		struct mo_error err = { 0 };

		mo_desc_init(&runtime_desc, &runtime);
		if (runtime_load(runtime_names[i], &runtime, &err) < 0)
			fail_msg("%s", mo_error_text(&err, -1));
		assert_string_equal(runtime.image[0], runtime_names[i]);
		assert_string_equal(runtime.start[0], runtime_names[i]);
		/* a line for each of what is asked, as runtime_answer_read() has it */
		const char *format = runtime.image[runtime.n_image - 2];
		const char *layers = strstr(format, "}}\n{{with .GraphDriver}}");

		assert_non_null(layers);
		assert_non_null(strstr(layers, "{{end}}\n{{json .Config}}"));
		mo_desc_done(&runtime_desc, &runtime);
	}
}

static void commands(void **state)
{
	struct runtime_words known = { .image = "i:1", .id = "77", .step = "j1.a1" };
	struct recipe_errors errors = { 0 };
	struct runtime runtime;

	mo_desc_init(&runtime_desc, &runtime);
	assert_int_equal(runtime_parse(WHOLE, strlen(WHOLE), &runtime, &errors), 0);
	char **argv = runtime_command(runtime.keep, runtime.n_keep, &known);
	size_t n = runtime.n_keep + 1;

	assert_int_equal(n, 4);
	assert_string_equal(argv[2], "{{.A}}:j1.a1{{.B}}");
	assert_null(argv[3]);
	mo_strs_clear(&argv, &n);
	assert_int_equal(runtime.n_start, 0);
	mo_desc_done(&runtime_desc, &runtime);
}

static void refused(void **state)
{
	static const struct {
		const char *old, *new, *said;
		int64_t line;
	} rows[] = {
		{ "runtime: 1", "runtime: 2", "runtime: expected", 1 },
		{ "name: r\n", "", "missing key 'name'", 1 },
		{ "kept: [r, ps]\n", "", "missing key 'kept'", 1 },
		{ "kept: [r, ps]", "kept: r ps", "kept: expected the words of a command", 5 },
		{ "kept: [r, ps]", "kept: []", "kept: expected the words of a command", 5 },
		{ "kept: [r, ps]", "kept: [r, '']", "kept: an empty word", 5 },
		{ "kept: [r, ps]", "kept: [r, '{step}']", "{step} is not known to this command",
		  5 },
		{ "rm, '{step}'", "rm, '{steps}'",
		  "{steps} is none of {image}, {id}, {step}, {dir}, {hold}", 6 },
		{ "rm, '{step}'", "rm, '{step'", "{ is not closed by }", 6 },
		{ "{{.B}}", "{{.B}", "{{ is not closed by }}", 4 },
		{ "'{image}'", "'{id}'", "image: {id} is not known to this command", 3 },
		{ "kept:", "kept: [r]\nstop:", "unknown key 'stop'", 6 },
		{ "kept:", "start: [r, '{life}']\nkept:", "start: {life} is none of", 5 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const char *at = strstr(WHOLE, rows[i].old);
		_cleanup_(mo_freep) char *text = mo_printf("%.*s%s%s", (int)(at - WHOLE), WHOLE,
							   rows[i].new, at + strlen(rows[i].old));
		struct recipe_errors errors = { 0 };
		struct runtime runtime;

		mo_desc_init(&runtime_desc, &runtime);
		assert_true(runtime_parse(text, strlen(text), &runtime, &errors) < 0);
		if (!strstr(errors.items[0].text, rows[i].said) ||
		    errors.items[0].line != rows[i].line)
			fail_msg("row %zu: line %lld: %s", i, (long long)errors.items[0].line,
				 errors.items[0].text);
		recipe_errors_done(&errors);
		mo_desc_done(&runtime_desc, &runtime);
	}
}

static void lists(void **state)
{
	char **names = NULL;
	size_t n = 0;

	runtime_list(NULL, &names, &n);
	assert_int_equal(n, 0);
	runtime_list("docker, podman,", &names, &n);
	assert_int_equal(n, 2);
	assert_string_equal(names[1], "podman");
	mo_strs_clear(&names, &n);
}

static void names(void **state)
{
	assert_true(runtime_image_valid("r.example:5000/a/b_c:v1.2@sha256:0a"));
	assert_false(runtime_image_valid(""));
	assert_false(runtime_image_valid("--privileged"));
	assert_false(runtime_image_valid("a b"));
	assert_false(runtime_image_valid("a{step}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped), cmocka_unit_test(commands), cmocka_unit_test(refused),
		cmocka_unit_test(names),   cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests_name("recipe/runtime_file", tests, NULL, NULL);
}
