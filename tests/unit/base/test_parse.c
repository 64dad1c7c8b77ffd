/* Numbers, durations, sizes, names, UTF-8, near misses, times: what is taken, what is refused, and
 * that refusals leave the result alone. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"

static void test_i64(void **state)
{
	static const struct {
		const char *text;
		int64_t min, max;
		int r;
		int64_t value;
	} t[] = {
		{ "0", INT64_MIN, INT64_MAX, 0, 0 },
		{ "-7", INT64_MIN, INT64_MAX, 0, -7 },
		{ "007", INT64_MIN, INT64_MAX, 0, 7 },
		{ "9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX },
		{ "-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN },
		{ "9223372036854775808", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "-9223372036854775809", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999999999", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "5", 6, 10, -ERANGE, 0 },
		{ "11", 6, 10, -ERANGE, 0 },
		{ "6", 6, 10, 0, 6 },
		{ "10", 6, 10, 0, 10 },
		{ "", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "-", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "+1", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ " 1", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "1 ", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "1.0", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "0x10", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "--1", INT64_MIN, INT64_MAX, -EINVAL, 0 },
		{ "99999999999999999999999999x", INT64_MIN, INT64_MAX, -EINVAL, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(t); i++) {
		int64_t v = 4711;

		assert_int_equal(mo_parse_i64(t[i].text, t[i].min, t[i].max, &v), t[i].r);
		assert_true(v == (t[i].r ? 4711 : t[i].value));
	}
}

static void test_double(void **state)
{
	static const char *const bad[] = { "",    " 1", "1 ", "1e",      "0x1p3", "nan(1)", "1,5",
					   "--1", "e5", ".",  "infinit", "1.2.3", "+" };
	double v = 4711;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(mo_parse_double(bad[i], &v), -EINVAL);
	assert_int_equal(mo_parse_double("1e999", &v), -ERANGE);
	assert_true(v == 4711);
	assert_int_equal(mo_parse_double("2.5e-3", &v), 0);
	assert_true(v == 0.0025);
	assert_int_equal(mo_parse_double("-.5", &v), 0);
	assert_true(v == -0.5);
	assert_int_equal(mo_parse_double("NaN", &v), 0);
	assert_true(isnan(v));
	assert_int_equal(mo_parse_double("-inf", &v), 0);
	assert_true(isinf(v) && v < 0);
	assert_int_equal(mo_parse_double("Infinity", &v), 0);
	assert_true(isinf(v) && v > 0);
}

/* The quick way of short numbers gives the very bits of the C library, signs of zero included. */
static void test_double_as_libc(void **state)
{
	/* clang-format off */
	static const char *const fixed[] = {
		"0", "-0", "0.0", "-0e5", "1.", ".5", "+3", "999999999999999", "9999999999999999",
		"1e22", "1e23", "1e-22", "123456789012345e22", "0.000000000000000000000001",
		"1.00e-03", "1E+05", "9007199254740993", "1e00000000000000000000000000000000000001",
		"12345.678e-300", "4.9e-324",
	};
	/* clang-format on */
	uint64_t seed = 88172645463325252u;
	char text[64];

	for (size_t i = 0; i < 100000 + ELEMENTSOF(fixed); i++) {
		double v = 4711, expect;
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		if (i < ELEMENTSOF(fixed))
			snprintf(text, sizeof(text), "%s", fixed[i]);
		else if (i % 2)
			snprintf(text, sizeof(text), "%s%.*f", i % 3 ? "" : "-", (int)(seed % 12),
				 (double)(seed >> 20) / 1e6);
		else
			snprintf(text, sizeof(text), "%.*e", (int)(seed % 17),
				 (double)(seed >> 11) / 1e7);
		assert_int_equal(sscanf(text, "%lf", &expect), 1);
		assert_int_equal(mo_parse_double(text, &v), 0);
		assert_memory_equal(&v, &expect, sizeof(v));
	}
}

static void test_bool(void **state)
{
	bool v = true;

	assert_int_equal(mo_parse_bool("off", &v), 0);
	assert_false(v);
	assert_int_equal(mo_parse_bool("yes", &v), 0);
	assert_true(v);
	assert_int_equal(mo_parse_bool("True", &v), -EINVAL);
	assert_int_equal(mo_parse_bool("", &v), -EINVAL);
	assert_true(v);
}

static void test_duration(void **state)
{
	static const struct {
		const char *text;
		int r;
		int64_t us;
	} t[] = {
		{ "30s", 0, 30000000 },
		{ "1.5h", 0, INT64_C(5400000000) },
		{ "7d", 0, INT64_C(604800000000) },
		{ "250ms", 0, 250000 },
		{ "10us", 0, 10 },
		{ "2m", 0, 120000000 },
		{ "3", 0, 3000000 },
		{ "0", 0, 0 },
		{ "0.25", 0, 250000 },
		{ "3650d", 0, INT64_C(315360000000000) },
		{ "3650.1d", -ERANGE, 0 },
		{ "99999999999999999999999999999999999999s", -ERANGE, 0 },
		{ "-1s", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "1 s", -EINVAL, 0 },
		{ "1.2.3s", -EINVAL, 0 },
		{ "1S", -EINVAL, 0 },
		{ "1e3s", -EINVAL, 0 },
		{ "1s1", -EINVAL, 0 },
		{ "infs", -EINVAL, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(t); i++) {
		int64_t v = 4711;

		assert_int_equal(mo_parse_duration_us(t[i].text, &v), t[i].r);
		assert_true(v == (t[i].r ? 4711 : t[i].us));
	}
}

static void test_size(void **state)
{
	static const struct {
		const char *text;
		int r;
		int64_t bytes;
	} t[] = {
		{ "12582912", 0, 12582912 },
		{ "256k", 0, 262144 },
		{ "256K", 0, 262144 },
		{ "16M", 0, 16777216 },
		{ "2G", 0, INT64_C(2147483648) },
		{ "1T", 0, INT64_C(1099511627776) },
		{ "8388607T", 0, INT64_C(8388607) << 40 },
		{ "8388608T", -ERANGE, 0 },
		{ "9223372036854775808", -ERANGE, 0 },
		{ "1.5G", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "G", -EINVAL, 0 },
		{ "1GB", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 },
		{ "0000000000000000000000000000000000000001", -ERANGE, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(t); i++) {
		int64_t v = 4711;

		assert_int_equal(mo_parse_size(t[i].text, &v), t[i].r);
		assert_true(v == (t[i].r ? 4711 : t[i].bytes));
	}
}

static void test_name(void **state)
{
	char name[65];

	assert_true(mo_name_valid("a"));
	assert_true(mo_name_valid("7b.v2_x-Y"));
	assert_false(mo_name_valid(NULL));
	assert_false(mo_name_valid(""));
	assert_false(mo_name_valid("-a"));
	assert_false(mo_name_valid(".a"));
	assert_false(mo_name_valid("a b"));
	assert_false(mo_name_valid("a/b"));
	assert_false(mo_name_valid("a\n"));
	assert_false(mo_name_valid("\xc3\xa9"));
	memset(name, 'a', 64);
	name[64] = 0;
	assert_false(mo_name_valid(name));
	name[63] = 0;
	assert_true(mo_name_valid(name));
}

/* Wherever the byte stands, and whatever stands around it. */
static void test_text_plain(void **state)
{
	static const char special[] = "\"\\\n\x1b\x1f\x80\xff\xe2";
	char text[80];

	for (size_t at = 0; at < sizeof(text); at++)
		for (size_t i = 0; special[i]; i++) {
			memset(text, "a !#[]~\x7f"[(at + i) % 8], sizeof(text));
			text[at] = special[i];
			assert_int_equal(mo_text_plain(text, sizeof(text)), at);
			assert_int_equal(mo_text_plain(text, at), at);
			assert_int_equal(mo_text_plain(text + at, sizeof(text) - at), 0);
		}
	assert_int_equal(mo_text_plain("", 0), 0);
}

static void test_utf8(void **state)
{
	static const char *const good[] = { "",
					    "abc",
					    "\xc2\x80",
					    "\xdf\xbf",
					    "\xe0\xa0\x80",
					    "\xed\x9f\xbf",
					    "\xee\x80\x80",
					    "\xf0\x90\x80\x80",
					    "\xf4\x8f\xbf\xbf" };
	/* clang-format off */
	static const char *const bad[] = {
		"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc2", "\xc2x", "\xe0\x9f\xbf", "\xe2\x82",
		"\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
		"a\xe2\x28\xa1", "\xf0\x9f\x98",
	};
	/* clang-format on */

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		assert_true(mo_utf8_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_false(mo_utf8_valid(bad[i], strlen(bad[i])));
	/* anywhere in a long text: it is looked at sixteen bytes at a time */
	for (size_t i = 0; i < ELEMENTSOF(good) + ELEMENTSOF(bad); i++) {
		bool is_good = i < ELEMENTSOF(good);
		const char *s = is_good ? good[i] : bad[i - ELEMENTSOF(good)];

		for (size_t at = 0; at < 40; at++) {
			char text[48];

			memset(text, 'x', sizeof(text));
			memcpy(text + at, s, strlen(s));
			assert_int_equal(mo_utf8_valid(text, sizeof(text)), is_good);
			assert_int_equal(mo_utf8_valid(text, at + strlen(s)), is_good);
		}
	}
	assert_int_equal(mo_utf8_next("\xe2\x82\xac"
				      "x",
				      4),
			 3);
	assert_int_equal(mo_utf8_next("\xe2\x82\xac", 2), 0);
	assert_int_equal(mo_utf8_next("x", 0), 0);
}

static void test_near_miss(void **state)
{
	static const char *const names[] = { "steps",      "name", "engine",
					     "checkpoint", "tp",   "recompute" };
	char longest[200];

	assert_string_equal(mo_near_miss("stpes", names, ELEMENTSOF(names)), "steps");
	assert_string_equal(mo_near_miss("chekpoint", names, ELEMENTSOF(names)), "checkpoint");
	assert_string_equal(mo_near_miss("Engine", names, ELEMENTSOF(names)), "engine");
	assert_string_equal(mo_near_miss("STEPS", names, ELEMENTSOF(names)), "steps");
	assert_string_equal(mo_near_miss("nam", names, ELEMENTSOF(names)), "name");
	assert_null(mo_near_miss("xp", names, ELEMENTSOF(names)));
	assert_null(mo_near_miss("plane", names, ELEMENTSOF(names)));
	assert_null(mo_near_miss("", names, ELEMENTSOF(names)));
	assert_null(mo_near_miss("something", names, ELEMENTSOF(names)));
	assert_null(mo_near_miss("steps", names, 0));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_null(mo_near_miss(longest, names, ELEMENTSOF(names)));
}

static void test_time(void **state)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", "2026", "2026-11-21 08:30:50Z", "2026-11-21T08:30:50", "2026-11-21T08:30:50.Z",
		"2026-11-21T08:30:50.1", "2026-11-21T08:30:50+00:00", "2026-11-21T08:30:50ZZ",
		"2026-1-21T08:30:50Z", "x026-11-21T08:30:50Z", "2026-11-21T08:30:5",
	};
	/* clang-format on */
	static const char *const range[] = { "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z",
					     "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z",
					     "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
					     "2026-01-01T00:00:60Z", "0000-01-01T00:00:00Z" };
	static const char *const same[] = {
		"1970-01-01T00:00:00.000Z", "2026-11-21T08:30:50.123Z", "2024-02-29T23:59:59.999Z",
		"2000-12-31T12:00:00.001Z", "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
		"1969-12-31T23:59:59.999Z", "2100-03-01T00:00:00.000Z"
	};
	char buf[32];
	int64_t us = 4711;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(mo_time_parse(bad[i], &us), -EINVAL);
	for (size_t i = 0; i < ELEMENTSOF(range); i++)
		assert_int_equal(mo_time_parse(range[i], &us), -ERANGE);
	assert_true(us == 4711);
	for (size_t i = 0; i < ELEMENTSOF(same); i++) {
		assert_int_equal(mo_time_parse(same[i], &us), 0);
		assert_string_equal(mo_time_format(us, buf), same[i]);
	}
	assert_int_equal(mo_time_parse("2026-11-21T08:30:50Z", &us), 0);
	assert_true(us == INT64_C(1795249850000000));
	assert_int_equal(mo_time_parse("2026-11-21T08:30:50.1234567Z", &us), 0);
	assert_true(us == INT64_C(1795249850123456));
	assert_string_equal(mo_time_format(INT64_MAX, buf), "9999-12-31T23:59:59.999Z");
	assert_string_equal(mo_time_format(INT64_MIN, buf), "0001-01-01T00:00:00.000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i64),
		cmocka_unit_test(test_double),
		cmocka_unit_test(test_double_as_libc),
		cmocka_unit_test(test_bool),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_text_plain),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_near_miss),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
