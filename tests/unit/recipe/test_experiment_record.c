/* The configuration that a job's record keeps: what is written of an experiment reads back as the
 * same, and nothing that anybody may have written instead does harm. */
#include <errno.h>
#include <string.h>

#include "lib/recipe/config_explain.h"
#include "lib/recipe/experiment_record.h"
#include "tests/unit/recipe/read.h"

static const char *const files[][2] = {
	{ "e.yaml", "work_group: a\nuser_name: b\nexp_name: c\nworkspace: d\nmodules:\n  "
		    "pre_trainer:\n    framework: m\n    config: p\n    model: q\n"
		    "    overrides: {lr: 1.0e-5, note: \"1e-5\", 'a\"b': 'x\"\\y', list: [1, [two, "
		    "null]], deep: {er: {x: true}}, none: null, seed: \"${SEED:7}\"}\n" },
	{ "primus/configs/modules/m/p.yaml", "lr: 2\nempty: {}\n" },
	{ "primus/configs/models/m/q.yaml", "layers: 4\n" },
	{ "primus/configs/platforms/platform_azure.yaml",
	  "name: x\nworkspace: x\nnum_nodes_env_key: x\nnode_rank_env_key: x\nmaster_addr_env_key: "
	  "x\n"
	  "master_port_env_key: x\ngpus_per_node_env_key: x\n" },
};

static int read_file(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (!strcmp(files[i][0], path)) {
			mo_buf_str(ret, files[i][1]);
			return 0;
		}
	return -ENOENT;
}

static const char *variable(void *arg, const char *name)
{
	return !strcmp(name, "SEED") ? "9" : NULL;
}

static void test_there_and_back(void **state)
{
	const char *const words[] = { "main.py", "train", "pretrain", "--config",
				      "e.yaml",  "--lr",  "3.5" };
	const struct experiment_world world = { NULL, read_file, variable };
	struct experiment x, back;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (experiment_resolve(&world, (char *const *)words, ELEMENTSOF(words), &x, &err) < 0)
		fail_msg("%s", mo_error_text(&err, -EINVAL));
	_cleanup_(mo_freep) char *packed = experiment_pack(&x);
	_cleanup_(mo_freep) char *text =
		mo_printf("experiment: {files: 'crc32c:%08x', result: %s}\n", x.crc, packed);

	if (experiment_of_text(text, strlen(text), &back, &err) < 0)
		fail_msg("%s: %s", packed, mo_error_text(&err, -EINVAL));
	_cleanup_(mo_freep) char *again = experiment_pack(&back);

	assert_string_equal(again, packed);
	assert_int_equal(back.crc, x.crc);
	const struct config_value *lr = config_find(back.merged, "lr"),
				  *seed = config_find(back.merged, "seed");

	assert_int_equal(lr->place.word, 5);
	assert_string_equal(lr->over->text, "1e-05");
	assert_int_equal(lr->over->kind, CONFIG_REAL);
	assert_int_equal(lr->over->over->place.line, 1);
	assert_string_equal(seed->variable, "SEED");
	assert_int_equal(seed->kind, CONFIG_INT);
	assert_int_equal(config_find(back.merged, "note")->kind, CONFIG_TEXT);
	assert_string_equal(config_find(back.merged, "deep.er.x")->text, "true");
	experiment_done(&x);
	experiment_done(&back);
}

static void test_anything_else(void **state)
{
	static const char *const bad[] = {
		"result: 5",
		"result: {}",
		"result: {read: 5, keys: []}",
		"result: {read: [], keys: 5}",
		"result: {read: [], keys: [[a]]}",
		"result: {read: [], keys: [a]}",
		"result: {read: [], keys: [[a, [1]]]}",
		"result: {read: [], keys: [[a, [1, 0, 1]]]}",
		"result: {read: [x], keys: [[a, [1, 1, 1]]]}",
		"result: {read: [x], keys: [[a, [1, 0, -5]]]}",
		"result: {read: [x], keys: [[a, [1, 0, b]]]}",
		"result: {read: [x], keys: [[a, [1, 0, 1], 5]]}",
		"result: {read: [x], keys: [[a, [1, 0, 1], [1, 7, 1]]]}",
		"result: {read: [x], keys: [], names: []}",
		"result: {read: [{a: 1}], keys: [[k, [1, 0, 1]]]}",
		"result: {read: [[x]], keys: []}",
		"result: {read: [x], keys: [], names: {workspace: [a]}}",
		"result: {read: [x], keys: [], framework: {}}",
		"result: {read: [x], keys: [], module: [a]}",
		"result: {read: [x], keys: [[a, [1, 0, -1]]]}",
		"result: {read: [x], keys: [[a, [1, -2, 1]]]}",
		"result: {read: [x], keys: [[a, [1, 0, 1, [V]]]]}",
		"result: {read: [x], keys: [[a, [1, 0, 1, V, 5]]]}",
		"result: {read: [x], keys: [[a, [1, '0', 1]]]}",
		"result: {read: [x], keys: [[{}, [1, 0, 1]]]}",
		"result: {read: [x], keys: [[a, []]]}",
		"result: {read: [x], keys: [[]]}",
		"result: null",
		"result: []",
	};
	struct experiment x;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		_cleanup_(mo_freep) char *text = mo_printf("experiment: {%s}\n", bad[i]);

		if (experiment_of_text(text, strlen(text), &x, &err) != -EINVAL)
			fail_msg("%s", text);
		assert_null(x.merged);
	}
	assert_int_equal(experiment_of_text("a: 1\n", 5, &x, NULL), -ENOENT);
	assert_int_equal(experiment_of_text("a: [\n", 5, &x, NULL), -ENOENT);
	static const char odd[] = "experiment: {result: {read: [x], keys: [[a, [1, 0, 1]], [a.b, "
				  "[2, 0, 2]], [c.d, [3, 0, 3]], [c, [4, 0, 4]]]}}\n";

	assert_int_equal(experiment_of_text(odd, strlen(odd), &x, NULL), 0);
	assert_string_equal(config_get(x.merged, "a")->text, "1");
	experiment_done(&x);
}

static char *of_key(const char *key, const char *value, int *ret)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("experiment: {result: {read: [x], keys: [['%s', [%s, 0, 1]]]}}\n", key,
			  value);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct experiment x;

	*ret = experiment_of_text(text, strlen(text), &x, &err);
	if (*ret < 0)
		return mo_strdup(mo_error_text(&err, *ret));
	struct mo_buf b = { 0 };

	config_json(x.merged, &b);
	experiment_done(&x);
	return mo_buf_take(&b);
}

/* What YAML takes for a number and JSON does not is written as JSON has it, or as a text. */
static void test_numbers(void **state)
{
	static const char *const stated[][2] = {
		{ "inf", "\"inf\"" },  { "nan", "\"nan\"" },   { "-Infinity", "\"-Infinity\"" },
		{ "+5", "5" },         { ".5", "0.5" },        { "5.", "5.0" },
		{ "01", "1" },         { "-007", "-7" },       { "1e999", "\"1e999\"" },
		{ "1e5", "100000.0" }, { "0x1f", "\"0x1f\"" }, { "1_0", "\"1_0\"" },
		{ "'5'", "\"5\"" },    { "1e-05", "1e-05" },
	};

	for (size_t i = 0; i < ELEMENTSOF(stated); i++) {
		int r;
		_cleanup_(mo_freep) char *got = of_key("k", stated[i][0], &r);
		_cleanup_(mo_freep) char *want = mo_printf("{\"k\":%s}", stated[i][1]);

		assert_string_equal(got, want);
	}
}

/* A key of CONFIG_DEPTH_MAX parts is taken, of more it is not: maps in maps cost memory and
 * stack. */
static void test_deep_keys(void **state)
{
	static const size_t parts[] = { CONFIG_DEPTH_MAX, CONFIG_DEPTH_MAX + 1, 90000 };

	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		struct mo_buf b = { 0 };
		int r;

		for (size_t k = 0; k < parts[i]; k++)
			mo_buf_str(&b, k ? ".a" : "a");
		_cleanup_(mo_freep) char *key = mo_buf_take(&b), *got = of_key(key, "1", &r);

		assert_int_equal(r, parts[i] > CONFIG_DEPTH_MAX ? -EINVAL : 0);
		if (r < 0)
			assert_non_null(strstr(got, "more than 32 parts"));
	}
}

/* A record that was taken before it was looked at: the recipe's own, and what a node sent. */
static void test_bad_records(void **state)
{
	static const char bad[] = "{\"read\":[{\"a\":1}],\"keys\":[[\"k\",[1,0,1]]]}";
	static const struct rank_command none = { 0 };
	static const struct engine engine = { 0 };
	static const struct recipe recipe = { 0 };
	_cleanup_(mo_freep) char *text = mo_printf("experiment: {result: %s}\n", bad),
				 *node = mo_printf("{\"result\": %s}", bad);
	struct mo_buf b = { 0 };
	struct config_given given = { .engine = &engine,
				      .recipe = &recipe,
				      .text = text,
				      .n = strlen(text),
				      .command = &none };
	_cleanup_(mo_error_done) struct mo_error of_recipe = { 0 }, of_node = { 0 };

	assert_int_equal(config_explain_record(&given, NULL, NULL, &b, &of_recipe), -EINVAL);
	assert_non_null(strstr(mo_error_text(&of_recipe, -EINVAL), "expected {read: [file]"));
	given.text = "";
	given.n = 0;
	assert_int_equal(config_explain_record(&given, node, NULL, &b, &of_node), -EINVAL);
	assert_non_null(strstr(mo_error_text(&of_node, -EINVAL), "expected {read: [file]"));
	assert_int_equal(config_explain_record(&given, NULL, NULL, &b, NULL), -ENOENT);
	assert_int_equal(b.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there_and_back),
					    cmocka_unit_test(test_anything_else),
					    cmocka_unit_test(test_numbers),
					    cmocka_unit_test(test_deep_keys),
					    cmocka_unit_test(test_bad_records) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
