/* Strings, growing arrays, buffers, errors, id sets. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/idset.h"

static void test_strings(void **state)
{
	_cleanup_(mo_freep) char *s = mo_strdup("hello");

	mo_str_set(&s, s + 1); /* from within itself */
	assert_string_equal(s, "ello");
	mo_str_set(&s, NULL);
	assert_null(s);
	assert_null(mo_strdup(NULL));
	s = mo_strndup("abc", 2);
	assert_string_equal(s, "ab");
	assert_true(mo_streq(NULL, NULL));
	assert_false(mo_streq(NULL, ""));
	assert_true(mo_starts_with("prefix", "pre"));
	assert_false(mo_starts_with(NULL, "pre"));
	assert_false(mo_starts_with("pr", "pre"));
}

static void test_path_clean(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "/", "/" },
		{ "//", "/" },
		{ "/..", "/" },
		{ "/a", "/a" },
		{ "/a/", "/a" },
		{ "//a//b/./c/", "/a/b/c" },
		{ "/a/../b", "/b" },
		{ "/a/b/../../..", "/" },
		{ "/a/..b/.c", "/a/..b/.c" },
		{ "a/../b", "a/../b" },
		{ "", "" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *clean = mo_path_clean(cases[i].in);

		assert_string_equal(clean, cases[i].out);
	}
	assert_null(mo_path_clean(NULL));
}

static void test_grow(void **state)
{
	int64_t *v = NULL;
	size_t n = 0;

	for (int64_t i = 0; i < 1000; i++) {
		int64_t *e = MO_GROW(v, n);

		assert_true(*e == 0);
		*e = i;
	}
	assert_int_equal(n, 1000);
	for (int64_t i = 0; i < 1000; i++)
		assert_true(v[i] == i);
	/* shrinking and growing again stays within the storage rule */
	for (size_t shrink = 0; shrink < 600; shrink++) {
		n = shrink;
		*MO_GROW(v, n) = 1;
	}
	free(v);
}

static void test_buf(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *taken = NULL, *empty = NULL;
	char big[5000];

	mo_buf_add(&b, NULL, 0);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	mo_buf_str(&b, "abc");
	mo_buf_printf(&b, "%d-%s", 7, "x");
	assert_string_equal(b.data, "abc7-x");
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	mo_buf_printf(&b, "%s!", big);
	assert_int_equal(b.len, 6 + 4999 + 1);
	assert_int_equal(b.data[b.len], 0);
	mo_buf_consume(&b, 3);
	assert_true(mo_starts_with(b.data, "7-xyyy"));
	mo_buf_consume(&b, 100000);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	mo_buf_str(&b, "kept");
	taken = mo_buf_take(&b);
	assert_string_equal(taken, "kept");
	assert_null(b.data);
	empty = mo_buf_take(&b);
	assert_string_equal(empty, "");
}

static void test_error(void **state)
{
	_cleanup_(mo_error_done) struct mo_error e = { 0 };

	assert_string_equal(mo_error_text(&e, -ENOENT), strerror(ENOENT));
	assert_string_equal(mo_error_text(NULL, -ENOENT), strerror(ENOENT));
	assert_int_equal(mo_error_set(NULL, -EINVAL, "lost"), -EINVAL);
	assert_int_equal(mo_error_set_at(&e, -EINVAL, 3, 7, "first %d", 1), -EINVAL);
	assert_int_equal(mo_error_set(&e, -ENOENT, "second"), -ENOENT);
	mo_error_hint(&e, "hint");
	mo_error_hint(&e, "other");
	assert_string_equal(mo_error_text(&e, -ENOENT), "first 1");
	assert_string_equal(e.hint, "hint");
	assert_true(e.line == 3 && e.column == 7);
}

static void check_set(const char *text, const char *expect)
{
	_cleanup_(mo_idset_done) struct mo_idset s = { 0 };
	_cleanup_(mo_freep) char *back = NULL;

	assert_int_equal(mo_idset_parse(text, &s), 0);
	back = mo_idset_format(&s);
	assert_string_equal(back, expect);
}

static void test_idset_text(void **state)
{
	static const struct {
		const char *text;
		int r;
	} bad[] = {
		{ ",", -EINVAL },        { "1,", -EINVAL },
		{ ",1", -EINVAL },       { "1,,2", -EINVAL },
		{ "-", -EINVAL },        { "1-", -EINVAL },
		{ "-1", -EINVAL },       { "3-1", -EINVAL },
		{ "1-2-3", -EINVAL },    { "a", -EINVAL },
		{ " 1", -EINVAL },       { "1 ", -EINVAL },
		{ "1;2", -EINVAL },      { "131072", -ERANGE },
		{ "0-131072", -ERANGE }, { "999999999999999999999", -ERANGE },
	};
	_cleanup_(mo_idset_done) struct mo_idset s = { 0 };

	check_set("", "");
	check_set("0", "0");
	check_set("0-7,12", "0-7,12");
	check_set("12,0-3,2-7,4", "0-7,12");
	check_set("63,64,65", "63-65");
	check_set("131071", "131071");
	check_set("0-131071", "0-131071");
	mo_idset_add(&s, 5);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(mo_idset_parse(bad[i].text, &s), bad[i].r);
	assert_int_equal(mo_idset_count(&s), 1);
	assert_true(mo_idset_has(&s, 5));
}

/* Ranges are what their members are one by one. */
static void test_idset_ranges(void **state)
{
	static const size_t edges[] = { 0, 1, 62, 63, 64, 65, 127, 128, 129, 131070, 131071 };

	for (size_t i = 0; i < ELEMENTSOF(edges); i++)
		for (size_t k = i; k < ELEMENTSOF(edges); k++) {
			_cleanup_(mo_idset_done) struct mo_idset range = { 0 }, single = { 0 };
			_cleanup_(mo_freep) char *text = mo_printf("%zu-%zu", edges[i], edges[k]);

			assert_int_equal(mo_idset_parse(text, &range), 0);
			for (size_t id = edges[i]; id <= edges[k]; id++)
				mo_idset_add(&single, id);
			assert_true(mo_idset_equal(&range, &single));
		}
}

static int64_t parse_ns(const char *range)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	_cleanup_(mo_idset_done) struct mo_idset s = { 0 };

	for (int i = 0; i < 800; i++)
		mo_buf_printf(&text, "%s%s", i ? "," : "", range);
	int64_t began = mo_clock_thread_ns();
	assert_int_equal(mo_idset_parse(text.data, &s), 0);
	return mo_clock_thread_ns() - began;
}

/* As many large ranges as a query string holds, each of them again: not a step for each member. */
static void test_idset_cost(void **state)
{
	assert_true(parse_ns("000000-131071") < 500 * MO_MAX(parse_ns("000000-000000"), 1000));
}

static void test_idset_algebra(void **state)
{
	_cleanup_(mo_idset_done) struct mo_idset a = { 0 }, b = { 0 }, c = { 0 };
	_cleanup_(mo_freep) char *and = NULL, * or = NULL, *andnot = NULL;

	assert_int_equal(mo_idset_parse("0-9,200", &a), 0);
	assert_int_equal(mo_idset_parse("5-14", &b), 0);
	mo_idset_copy(&c, &a);
	assert_true(mo_idset_equal(&c, &a));
	assert_false(mo_idset_equal(&a, &b));
	mo_idset_and(&c, &b);
	and = mo_idset_format(&c);
	assert_string_equal(and, "5-9");
	mo_idset_copy(&c, &b);
	mo_idset_or(&c, &a);
	or = mo_idset_format(&c);
	assert_string_equal(or, "0-14,200");
	mo_idset_copy(&c, &a);
	mo_idset_andnot(&c, &b);
	andnot = mo_idset_format(&c);
	assert_string_equal(andnot, "0-4,200");
	assert_true(mo_idset_next(&c, 5) == 200);
	assert_true(mo_idset_next(&c, 201) == -1);
	assert_true(mo_idset_next(&c, 100000) == -1);
	assert_true(mo_idset_next(&c, -5) == 0);
	mo_idset_done(&b);
	mo_idset_parse("200,60000", &b);
	mo_idset_andnot(&c, &b);
	assert_int_equal(mo_idset_count(&c), 5);
	mo_idset_add(&c, 131072);
	assert_int_equal(mo_idset_count(&c), 5);
	assert_false(mo_idset_has(&c, SIZE_MAX));
	/* trailing zero words make no difference */
	mo_idset_done(&b);
	mo_idset_parse("0-4", &b);
	assert_true(mo_idset_equal(&b, &c));
	mo_idset_copy(&b, &b);
	assert_int_equal(mo_idset_count(&b), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),       cmocka_unit_test(test_path_clean),
		cmocka_unit_test(test_grow),          cmocka_unit_test(test_buf),
		cmocka_unit_test(test_error),         cmocka_unit_test(test_idset_text),
		cmocka_unit_test(test_idset_ranges),  cmocka_unit_test(test_idset_cost),
		cmocka_unit_test(test_idset_algebra),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
