/* What an engine makes of its merged configuration by itself: rows in order, conditions on what
 * the rows before made, and Primus' own table. */
#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/config_scalar.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/experiment_forced.h"
#include "tests/unit/recipe/read.h"
#include "lib/recipe/engine_load.h"

static void experiment_of(const char *words, struct experiment *ret)
{
	const struct config_place nowhere = { .file = -1, .word = -1 };

	*ret = (struct experiment){ .merged = config_value_new(CONFIG_MAP, NULL, nowhere) };
	for (const char *s = words; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, "="), end = strcspn(s, " ");
		_cleanup_(mo_freep) char *key = mo_strndup(s, n),
					 *word = mo_strndup(s + n + 1, end - n - 1);

		config_put(ret->merged, key, config_word_value(word, nowhere));
		s += end;
	}
}

/* "key=value because\n" of each. */
static char *forced_text(const struct engine *e, const char *words)
{
	struct experiment_forced *forced = NULL;
	struct experiment x;
	struct mo_buf b = { 0 };
	size_t n = 0;

	experiment_of(words, &x);
	experiment_forced(e, &x, &forced, &n);
	for (size_t i = 0; i < n; i++) {
		mo_buf_printf(&b, "%s=", forced[i].key);
		config_json(forced[i].value, &b);
		mo_buf_printf(&b, " %s\n", forced[i].because);
	}
	experiment_forced_free(forced, n);
	experiment_done(&x);
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

static void test_order(void **state)
{
	static const char text[] =
		"engine: 1\nkind: x\nsource: s\nargv: [a]\nexperiment:\n  format: primus\n  "
		"forced:\n"
		"    - {when: {a: '>0'}, set: {b: 'true', c: None}, because: first}\n"
		"    - {when: {b: 'true', d: missing}, set: {d: '7', e: flex}, because: second}\n"
		"    - {when: {e: flex}, set: {b: 'false'}, because: third}\n";
	static const struct {
		const char *words, *expected;
	} cases[] = {
		{ "a=0 c=x", "" },
		{ "a=1 c=x", "b=false third\nc=null first\nd=7 second\ne=\"flex\" second\n" },
		{ "a=2 b=true d=1", "" },
		{ "a=0 b=true c=None", "b=false third\nd=7 second\ne=\"flex\" second\n" },
	};
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	assert_int_equal(engine_parse(text, strlen(text), &e, &errors), 0);
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *got = forced_text(&e, cases[i].words);
		const char *line = cases[i].expected;

		/* In any order of keys. */
		if (strlen(got) != strlen(cases[i].expected))
			fail_msg("%s:\n%s\ninstead of\n%s", cases[i].words, got, cases[i].expected);
		for (; *line; line += strcspn(line, "\n") + 1) {
			_cleanup_(mo_freep) char *one = mo_strndup(line, strcspn(line, "\n") + 1);

			if (!strstr(got, one))
				fail_msg("%s: no %sin\n%s", cases[i].words, one, got);
		}
	}
	mo_desc_done(&engine_desc, &e);
}

static void test_primus(void **state)
{
	struct mo_error err = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	assert_int_equal(engine_load("primus-megatron", &e, &err), 0);
	_cleanup_(mo_freep) char *two =
		forced_text(&e, "turbo_sync_free_moe_stage=2 enable_primus_turbo=true "
				"use_turbo_deepep=false use_turbo_grouped_gemm=true fp8=hybrid "
				"iterations_to_skip=[]");

	assert_non_null(strstr(two, "use_turbo_deepep=true stage of turbo_sync_free_moe_stage "
				    "(patches/args/rocm_arg_validation.py:44)"));
	assert_non_null(strstr(two, "moe_router_padding_for_quantization=true stage"));
	assert_null(strstr(two, "moe_token_dispatcher_type")); /* its patch looked before */
	assert_null(strstr(two, "use_turbo_grouped_gemm"));    /* it is already */
	_cleanup_(mo_freep) char *deepep =
		forced_text(&e, "enable_primus_turbo=true use_turbo_deepep=true "
				"moe_token_dispatcher_type=alltoall tensor_model_parallel_size=2 "
				"iterations_to_skip=[]");

	assert_non_null(strstr(deepep, "moe_token_dispatcher_type=\"flex\" DeepEP's dispatcher"));
	assert_null(strstr(deepep, "sequence_parallel"));
	mo_desc_done(&engine_desc, &e);
}

static void test_bad(void **state)
{
	static const struct {
		const char *lines, *expected;
	} bad[] = {
		{ "{a: b}", "7:11 experiment.forced: expected a list" },
		{ "[{when: {a: b}, set: {c: d}}]",
		  "7:12 experiment.forced: expected {when, set, because}" },
		{ "[{when: 1, set: {c: d}, because: x}]",
		  "7:19 experiment.forced: expected a mapping" },
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("engine: 1\nkind: x\nsource: s\nargv: [a]\nexperiment:\n  "
				  "format: primus\n  forced: %s\n",
				  bad[i].lines);
		_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_parse(text, strlen(text), &e, &errors), -22);
		_cleanup_(mo_freep) char *said = errors_text(&errors);

		if (strncmp(said, bad[i].expected, strlen(bad[i].expected)) != 0)
			fail_msg("%s\nexpected: %s\n     got: %s", bad[i].lines, bad[i].expected,
				 said);
		mo_desc_done(&engine_desc, &e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order),
					    cmocka_unit_test(test_primus),
					    cmocka_unit_test(test_bad) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
