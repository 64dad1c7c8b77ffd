/* Any bytes through every checked parser: nothing crashes, what is taken reads back the same, and
 * refusals leave the result alone. ROOMS: base */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/idset.h"
#include "lib/base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void numbers(const char *s)
{
	int64_t v = 4711, back = 0;
	bool flag = false;
	double d = 4711;
	char buf[32];

	require(mo_parse_i64(s, -1000, 1000, &v) == 0 ? v >= -1000 && v <= 1000 : v == 4711);
	v = 4711;
	require(mo_parse_duration_us(s, &v) == 0 ? v >= 0 : v == 4711);
	v = 4711;
	require(mo_parse_size(s, &v) == 0 ? v >= 0 : v == 4711);
	v = 4711;
	if (mo_time_parse(s, &v) == 0)
		require(mo_time_parse(mo_time_format(v, buf), &back) == 0 && back <= v &&
			v - back < 1000);
	else
		require(v == 4711);
	if (mo_parse_double(s, &d) < 0)
		require(d == 4711);
	mo_parse_bool(s, &flag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const words[] = { "checkpoint", "steps", "name", "parallelism", "tp" };
	_cleanup_(mo_freep) char *s = mo_strndup((const char *)data, n), *text = NULL;
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 }, back = { 0 };
	size_t at = 0, len = 1;

	numbers(s);
	mo_name_valid(s);
	mo_near_miss(s, words, ELEMENTSOF(words));
	while (at < n && len) {
		len = mo_utf8_next((const char *)data + at, n - at);
		at += len;
	}
	require(mo_utf8_valid((const char *)data, n) == (at == n));
	if (mo_idset_parse(s, &set) == 0) {
		text = mo_idset_format(&set);
		require(mo_idset_parse(text, &back) == 0 && mo_idset_equal(&set, &back));
	}
	return 0;
}
