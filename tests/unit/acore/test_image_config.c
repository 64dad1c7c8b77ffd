/* What an image says about itself, of somebody's files. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/core/stepd/image_config.h"
#include "lib/base/buf.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

static int of_bundle(const char *json, struct image_config *ret, struct mo_error *err)
{
	_cleanup_(image_bundle_done) struct image_bundle bundle;

	mo_desc_init(&image_bundle_desc, &bundle);
	int r = wire_decode(&image_bundle_desc, json, strlen(json), false, &bundle, err);

	return r < 0 ? r : image_config_bundle(&bundle, ret, err);
}

/* The result as JSON, or the error's text. */
static void expect(bool bundle, const char *text, size_t n, const char *wanted)
{
	_cleanup_(image_config_done) struct image_config c;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_desc_init(&image_config_desc, &c);
	int r = bundle ? of_bundle(text, &c, &err) : image_config_environment(text, n, &c, &err);

	if (r < 0)
		mo_buf_str(&b, mo_error_text(&err, r));
	else
		wire_encode(&image_config_desc, &c, &b);
	assert_string_equal(b.data, wanted);
}

static void env(const char *text, const char *wanted)
{
	_cleanup_(mo_freep) char *whole = mo_printf("{\"env\":[%s],\"workdir\":null}", wanted);

	expect(false, text, strlen(text), whole);
}

static void test_environment(void **state)
{
	env("", "");
	env("A=1", "{\"name\":\"A\",\"value\":\"1\"}");
	env("A=\nB=x=y \r\n", "{\"name\":\"A\",\"value\":\"\"},{\"name\":\"B\",\"value\":\"x=y\"}");
	env("\texport A=\"a b\"\n", "{\"name\":\"A\",\"value\":\"a b\"}");
	env("A='a\nB=\"\nC='a b'\n", "{\"name\":\"A\",\"value\":\"'a\"},"
				     "{\"name\":\"B\",\"value\":\"\\\"\"},"
				     "{\"name\":\"C\",\"value\":\"a b\"}");
	env("A=1\nB=2\nA=3\n", "{\"name\":\"A\",\"value\":\"3\"},{\"name\":\"B\",\"value\":\"2\"}");
	env("# A=1\n\n=1\n1A=1\nA-B=1\nA\nA B=1\nexport \n", "");
}

static void test_environment_refused(void **state)
{
	static const char nul[] = "A=1\nB=\0 2\n";

	expect(false, nul, sizeof(nul) - 1, "it holds a NUL byte");
	expect(false, "A=1\nB=\xff\n", 8, "the value of B is no UTF-8");
}

static void test_too_many(void **state)
{
	_cleanup_(image_config_done) struct image_config c;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_desc_init(&image_config_desc, &c);
	for (int i = 0; i < IMAGE_VARIABLES_MAX; i++)
		mo_buf_printf(&b, "V%d=1\n", i);
	assert_int_equal(image_config_environment(b.data, b.len, &c, &err), 0);
	assert_int_equal(c.n_env, IMAGE_VARIABLES_MAX);
	/* one that is there already is none more */
	assert_int_equal(image_config_environment("V0=2\n", 5, &c, &err), 0);
	assert_int_equal(image_config_environment("W=2\n", 4, &c, &err), -E2BIG);
	assert_string_equal(err.text, "it has more than 4096 variables");
}

static void test_bundle(void **state)
{
	static const struct {
		const char *json, *wanted;
	} rows[] = {
		{ "{}", "{\"env\":[],\"workdir\":null}" },
		{ "{\"process\":null}", "{\"env\":[],\"workdir\":null}" },
		{ "{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":true,\"user\":{\"uid\":0},"
		  "\"env\":[\"PATH=/opt/venv/bin:/bin\",\"E=\",\"NONE\",\"=x\",\"A.B=1\"],"
		  "\"cwd\":\"/workspace\"},\"root\":{\"path\":\"rootfs\"}}",
		  "{\"env\":[{\"name\":\"PATH\",\"value\":\"/opt/venv/bin:/bin\"},"
		  "{\"name\":\"E\",\"value\":\"\"}],\"workdir\":\"/workspace\"}" },
		{ "{\"process\":{\"cwd\":\"w\"}}", "process.cwd is no absolute path: w" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		expect(true, rows[i].json, 0, rows[i].wanted);
}

/* Half a document, and values of another kind: refused by the reader of JSON, by their place. */
static void test_bundle_refused(void **state)
{
	static const char *const bad[] = { "",
					   "{\"process\":{\"env\":[\"A=1\"",
					   "[]",
					   "{\"process\":{\"env\":{\"A\":1}}}",
					   "{\"process\":{\"env\":[1]}}",
					   "{\"process\":{\"env\":[\"A=\\u0000\"]}}",
					   "{\"process\":[]}" };

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(image_config_done) struct image_config c;
		_cleanup_(mo_error_done) struct mo_error err = { 0 };

		mo_desc_init(&image_config_desc, &c);
		assert_true(of_bundle(bad[i], &c, &err) < 0);
		assert_non_null(err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_environment),    cmocka_unit_test(test_environment_refused),
		cmocka_unit_test(test_too_many),       cmocka_unit_test(test_bundle),
		cmocka_unit_test(test_bundle_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
