/* Keys of many parts: each part is a map in the one before, and who reads maps goes down into
 * them. */
#include <errno.h>
#include <string.h>

#include "lib/recipe/config_files.h"
#include "lib/recipe/config_toml.h"
#include "tests/unit/recipe/read.h"

static const size_t parts[] = { CONFIG_DEPTH_MAX, CONFIG_DEPTH_MAX + 1, 90000 };

/* BEFORE a.a.a BEHIND */
static char *key_of(const char *before, size_t n, const char *behind)
{
	struct mo_buf b = { 0 };

	mo_buf_str(&b, before);
	for (size_t i = 0; i < n; i++)
		mo_buf_str(&b, i ? ".a" : "a");
	mo_buf_str(&b, behind);
	return mo_buf_take(&b);
}

static void test_words(void **state)
{
	static const struct {
		const char *how, *before, *behind;
	} forms[] = {
		{ "dotted", "--", "=1" }, { "dotted", "--", "" }, { "flags", "--", "" },
		{ "kept", "--", "=1" },   { "equals", "", "=1" },
	};

	for (size_t i = 0; i < ELEMENTSOF(forms) * ELEMENTSOF(parts); i++) {
		size_t n = parts[i % ELEMENTSOF(parts)], form = i / ELEMENTSOF(parts);
		_cleanup_(mo_freep) char *word = key_of(forms[form].before, n, forms[form].behind);
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		const char *const words[] = { "train.py", word, "2" };
		struct engine e = { .config_words = (char *)forms[form].how };
		struct experiment x = { 0 };
		int r = config_files_command(&e, &x, (char *const *)words, ELEMENTSOF(words), &err);

		assert_int_equal(r, n > CONFIG_DEPTH_MAX ? -EINVAL : 0);
		if (r < 0)
			assert_non_null(strstr(mo_error_text(&err, r), "more than 32 parts"));
		experiment_done(&x);
	}
}

static void test_values_may_have_dots(void **state)
{
	_cleanup_(mo_freep) char *word = key_of("--path=", 90, "");
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *const words[] = { "train.py", word };
	struct engine e = { .config_words = (char *)"dotted" };
	struct experiment x = { 0 };

	assert_int_equal(config_files_command(&e, &x, (char *const *)words, ELEMENTSOF(words),
					      &err),
			 0);
	assert_string_equal(config_get(x.merged, "path")->text, word + strlen("--path="));
	experiment_done(&x);
}

static void test_toml(void **state)
{
	static const char *const forms[][2] = {
		{ "", " = 1\n" },
		{ "[", "]\nb = 1\n" },
		{ "[[", "]]\nb = 1\n" },
		{ "x = {", " = 1}\n" },
	};

	for (size_t i = 0; i < ELEMENTSOF(forms) * ELEMENTSOF(parts); i++) {
		size_t n = parts[i % ELEMENTSOF(parts)], form = i / ELEMENTSOF(parts);
		_cleanup_(mo_freep) char *text = key_of(forms[form][0], n, forms[form][1]);
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		int64_t line;
		_cleanup_(config_value_freep) struct config_value *v =
			config_toml(text, strlen(text), (struct config_place){ 0, 1, -1 }, &line,
				    &err);

		assert_int_equal(v != NULL, n <= CONFIG_DEPTH_MAX);
		if (!v)
			assert_non_null(strstr(mo_error_text(&err, -EINVAL), "more than 32 parts"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_values_may_have_dots),
		cmocka_unit_test(test_toml),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
