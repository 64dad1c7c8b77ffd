/* Files that an engine's configuration names: which of them are not there, by the kind of their
 * key. */
#include <string.h>

#include "lib/recipe/config_inputs.h"
#include "tests/unit/recipe/read.h"

/* "a b" of the paths that are there. */
static bool is_there(void *arg, const char *path)
{
	const char *list = arg, *at = strstr(list, path);
	size_t n = strlen(path);

	while (at && !((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ')))
		at = strstr(at + 1, path);
	return at;
}

static void put(struct experiment *x, const char *key, struct config_value *v)
{
	config_put(x->merged, key, v);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *how, *value, *there, *missing;
	} cases[] = {
		{ "file", "a.toml", "b.toml", "a.toml" },
		{ "file", "a.toml", "a.toml", "" },
		{ "file", "x/a", "", "x/a" },
		{ "path", "meta/llama", "", "" }, /* a model of a hub */
		{ "path", "/meta/llama", "", "/meta/llama" },
		{ "path", "./t", "", "./t" },
		{ "path", "../t", "../t", "" },
		{ "path", "~/t", "", "" },
		{ "file", "s3://a/b", "", "" },
		{ "file", "data/*.bin", "", "" },
		{ "file", "", "", "" },
		{ "file", "-b", "", "" },
		{ "file", "{\"zero_optimization\": {\"stage\": 2}}", "", "" },
		{ "prefixes", "0.5 /d/a 0.5\n/d/b", "/d/a.idx", "/d/b" },
		{ "prefixes", "/d/a", "/d/a.bin", "" },
		{ "prefixes", " /d/a /d/c ", "/d/a", "/d/c" },
		{ "prefixes unless mock", "/d/a", "", "" },
		{ "file unless kind=none", "a", "", "" },
		{ "file unless kind=other", "a", "", "a" },
		{ "file unless absent", "a", "", "a" },
		{ "file unless kind=no*", "a", "", "" },
		{ "file unless kind=nothing*", "a", "", "a" },
		{ "file unless absent or kind=none", "a", "", "" },
		{ "file unless absent or kind=other or list", "a", "", "a" },
		{ "file if kind=none", "a", "", "a" },
		{ "file if kind=other", "a", "", "" },
		{ "file if absent or kind=no*", "a", "", "a" },
		{ "file if absent", "a", "", "" },
		{ "file if kind=none unless mock", "a", "", "" },
		{ "file if kind=none unless absent", "a", "", "a" },
	};
	const struct config_place nowhere = { -1, 0, -1 };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const struct kv row = { (char *)"key", (char *)cases[i].how };
		struct experiment x = { .merged = config_value_new(CONFIG_MAP, NULL, nowhere) };
		struct config_missing *items = NULL;
		size_t n = 0;

		put(&x, "mock", config_value_new(CONFIG_BOOL, "true", nowhere));
		put(&x, "kind", config_value_new(CONFIG_TEXT, "none", nowhere));
		put(&x, "key", config_value_new(CONFIG_TEXT, cases[i].value, nowhere));
		assert_null(config_input_wrong(cases[i].how));
		config_inputs(&row, 1, &x, is_there, (void *)cases[i].there, &items, &n);
		if (n != (*cases[i].missing != 0) ||
		    (n && strcmp(items[0].path, cases[i].missing) != 0))
			fail_msg("%s %s: %zu missing: %s", cases[i].how, cases[i].value, n,
				 n ? items[0].path : "");
		config_missing_free(items, n);
		experiment_done(&x);
	}
	assert_non_null(config_input_wrong("fil"));
	assert_non_null(config_input_wrong("file unles a"));
	assert_non_null(config_input_wrong("files"));
	assert_non_null(config_input_wrong("file if"));
	assert_non_null(config_input_wrong("file or a"));
	assert_non_null(config_input_wrong("file if or"));
	assert_non_null(config_input_wrong("file if a b"));
	assert_non_null(config_input_wrong("file if a or"));
	assert_non_null(config_input_wrong("file unless if a"));
	assert_non_null(config_input_wrong("file a"));
}

/* A list says several; what is no text names nothing; not more than some are reported. */
static void test_values(void **state)
{
	const struct config_place nowhere = { -1, 0, -1 };
	const struct kv rows[] = { { (char *)"list", (char *)"prefixes" },
				   { (char *)"a.b", (char *)"file" },
				   { (char *)"null", (char *)"file" } };
	struct experiment x = { .merged = config_value_new(CONFIG_MAP, NULL, nowhere) };
	struct config_value *list = config_value_new(CONFIG_LIST, NULL, nowhere);
	struct config_missing *items = NULL;
	size_t n = 0;

	for (int i = 0; i < 40; i++)
		config_append(list, config_value_new(CONFIG_TEXT, "/x", nowhere));
	put(&x, "list", list);
	put(&x, "a", config_value_new(CONFIG_MAP, NULL, nowhere));
	config_put(config_get(x.merged, "a"), "b", config_value_new(CONFIG_BOOL, "true", nowhere));
	put(&x, "null", config_value_new(CONFIG_NULL, NULL, nowhere));
	config_inputs(rows + 1, 2, &x, is_there, (void *)"", &items, &n);
	assert_int_equal(n, 0);
	config_inputs(rows, 1, &x, is_there, (void *)"", &items, &n);
	assert_int_equal(n, 20);
	assert_string_equal(items[0].key, "list");
	config_missing_free(items, n);
	experiment_done(&x);
}

/* `--deepspeed_config ds.json data -b 8`: words behind the value are the program's own. */
static void test_words_behind(void **state)
{
	static const char *const words[] = { "ds.json", "data", "-b" };
	const struct config_place nowhere = { -1, 0, -1 };

	for (int there = 0; there < 2; there++) {
		const struct kv row = { (char *)"key", (char *)"file" };
		struct experiment x = { .merged = config_value_new(CONFIG_MAP, NULL, nowhere) };
		struct config_value *list = config_value_new(CONFIG_LIST, NULL, nowhere);
		struct config_missing *items = NULL;
		size_t n = 0;

		for (size_t i = 0; i < ELEMENTSOF(words); i++)
			config_append(list, config_value_new(CONFIG_TEXT, words[i], nowhere));
		put(&x, "key", list);
		config_inputs(&row, 1, &x, is_there, (void *)(there ? "ds.json" : ""), &items, &n);
		assert_int_equal(n, !there);
		config_missing_free(items, n);
		experiment_done(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kinds),
					    cmocka_unit_test(test_values),
					    cmocka_unit_test(test_words_behind) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
