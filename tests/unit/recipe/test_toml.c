/* A TOML as torchtitan's are: typed values with their lines; what is not read is an error with
 * its line. */
#include <string.h>

#include "lib/recipe/toml.h"
#include "tests/unit/recipe/read.h"

static char *json(const char *text)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(config_value_freep) struct config_value *v = NULL;
	struct mo_buf b = { 0 };

	if (toml_read(text, strlen(text), &v, &err) < 0)
		return mo_strdup(mo_error_text(&err, -1));
	config_json(v, &b);
	return mo_buf_take(&b);
}

static void is(const char *text, const char *want)
{
	_cleanup_(mo_freep) char *have = json(text);

	assert_string_equal(have, want);
}

static void values(void **state)
{
	is("# c\n[job]\nfolder = \"./out\" # d\n[training]\nsteps = 1_000\nlr = 2.2e-4\ngo = "
	   "true\nname = 'a\\b'\n",
	   "{\"job\":{\"folder\":\"./"
	   "out\"},\"training\":{\"go\":true,\"lr\":0.00022,\"name\":\"a\\\\b\",\"steps\":1000}}");
	is("a.b = -1\na.c = [1, [2, 'x'],\n  3, # d\n]\nd = {e = 1, f = \"\"}\r\n[a.g]\nh = +7\n",
	   "{\"a\":{\"b\":-1,\"c\":[1,[2,\"x\"],3],\"g\":{\"h\":7}},\"d\":{\"e\":1,\"f\":\"\"}}");
	is("s = \"\"\"\none\\n\"two\"\"\"\"", "2: text behind the value");
	is("", "{}");
}

static void what_is_not_read(void **state)
{
	is("a = 1\na = 2\n", "2: a key that is given twice");
	is("\n\na = 2026-01-01\n",
	   "3: a value that is no text, number, truth value, list or table (dates are not read)");
	is("[[a]]\n", "1: arrays of tables ([[..]]) are not read");
	is("a = \"x\n", "1: a text that is not closed");
	is("a = [1, 2\n", "2: expected , or ] in a list");
	is("a = 1 2\n", "1: text behind the value");
	is("= 1\n", "1: expected a key");
	is("a\n", "1: expected = behind a key");
	is("a = 1\n[a]\n", "2: a table whose name has a value already");
	is("a = 1\na.b = 1\n", "2: a key below something that is no table");
}

static void deep(void **state)
{
	char text[4096] = "a = ";

	memset(text + 4, '[', 2000);
	_cleanup_(mo_freep) char *have = json(text);
	assert_non_null(strstr(have, "deeper"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(what_is_not_read),
		cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
