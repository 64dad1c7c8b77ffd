/* Checked parsing of numbers, durations, sizes, names, times. Nothing here depends on the
 * locale; all input may be hostile. The only user of the strto* family. */
#include "lib/base/parse.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "lib/base/assert.h"

#define DURATION_MAX_US (INT64_C(3650) * 24 * 3600 * 1000000)
#define NEAR_MISS_MAX 64                              /* longer words get no suggestion */
#define TIME_MIN_US (INT64_C(-62135596800) * 1000000) /* 0001-01-01T00:00:00Z */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int mo_parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = *s == '-';
	int64_t v = 0;
	bool range = false;

	mo_assert(ret && min <= max);
	if (negative)
		s++;
	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		if (!is_digit(*s))
			return -EINVAL;
		/* negative all along, so that INT64_MIN fits */
		range |= __builtin_mul_overflow(v, 10, &v) ||
			 __builtin_sub_overflow(v, *s - '0', &v);
	}
	if (!negative)
		range |= __builtin_sub_overflow(INT64_C(0), v, &v);
	if (range || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

/* What is printed most: up to 15 digits and a power of ten that a double holds exactly, so that
 * one correctly rounded operation gives what strtod() would (Clinger 1990). False: another kind
 * of text, or none; the slow way decides. */
static bool parse_short(const char *s, double *ret)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	bool negative = *s == '-', point = false, small;
	int64_t digits = 0;
	int n = 0, scale = 0, exponent = 0;
	double v;

	s += *s == '-' || *s == '+';
	for (; is_digit(*s) || (*s == '.' && !point); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		digits = digits * 10 + (*s - '0');
		scale += point;
		if (++n > 15)
			return false;
	}
	if (n > 0 && (*s == 'e' || *s == 'E') && s[1]) {
		small = *++s == '-';
		s += *s == '-' || *s == '+';
		if (!is_digit(*s))
			return false;
		for (; is_digit(*s) && exponent < 100; s++)
			exponent = exponent * 10 + (*s - '0');
		scale -= small ? -exponent : exponent;
	}
	if (n == 0 || *s || scale > 22 || scale < -22)
		return false;
	v = scale > 0 ? (double)digits / powers[scale] : (double)digits * powers[-scale];
	*ret = negative ? -v : v;
	return true;
}

int mo_parse_double(const char *s, double *ret)
{
	static locale_t c_locale;
	const char *p = s;
	char *end;
	double v;

	if (parse_short(s, ret))
		return 0;
	if (*p == '-' || *p == '+')
		p++;
	if (strcasecmp(p, "nan") == 0) {
		*ret = NAN;
		return 0;
	}
	if (strcasecmp(p, "inf") == 0 || strcasecmp(p, "infinity") == 0) {
		*ret = *s == '-' ? -INFINITY : INFINITY;
		return 0;
	}
	/* refuses what strtod would take: spaces, hexadecimal, nan(...) */
	if (!*p || p[strspn(p, "0123456789.eE+-")])
		return -EINVAL;
	if (!c_locale) {
		c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
		if (!c_locale)
			abort();
	}
	v = strtod_l(s, &end, c_locale);
	if (end == s || *end)
		return -EINVAL;
	if (isinf(v))
		return -ERANGE;
	*ret = v;
	return 0;
}

int mo_parse_bool(const char *s, bool *ret)
{
	static const char *const words[] = { "true", "yes", "on", "1", "false", "no", "off", "0" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strcmp(s, words[i]) == 0) {
			*ret = i < 4;
			return 0;
		}
	return -EINVAL;
}

/* Splits "12.5ms" into the number and what follows. */
static int parse_amount(const char *s, double *ret, const char **ret_unit)
{
	size_t n = strspn(s, "0123456789.");
	char text[32];

	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(text))
		return -ERANGE;
	memcpy(text, s, n);
	text[n] = 0;
	*ret_unit = s + n;
	return mo_parse_double(text, ret);
}

int mo_parse_duration_us(const char *s, int64_t *ret)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = {
		{ "", 1e6 },   { "us", 1 },     { "ms", 1e3 },    { "s", 1e6 },
		{ "m", 60e6 }, { "h", 3600e6 }, { "d", 86400e6 },
	};
	const char *unit;
	double amount;
	int r = parse_amount(s, &amount, &unit);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (strcmp(unit, units[i].unit) == 0) {
			if (amount * units[i].us > (double)DURATION_MAX_US)
				return -ERANGE;
			*ret = (int64_t)(amount * units[i].us + 0.5);
			return 0;
		}
	return -EINVAL;
}

int mo_parse_size(const char *s, int64_t *ret)
{
	size_t n = strspn(s, "0123456789");
	char text[32];
	int64_t v, shift;
	int r;

	if (n == 0)
		return -EINVAL;
	if (n >= sizeof(text))
		return -ERANGE;
	memcpy(text, s, n);
	text[n] = 0;
	s += n;
	if (*s && s[1])
		return -EINVAL;
	switch (*s) {
	case 0: shift = 0; break;
	case 'k':
	case 'K': shift = 10; break;
	case 'M': shift = 20; break;
	case 'G': shift = 30; break;
	case 'T': shift = 40; break;
	default: return -EINVAL;
	}
	r = mo_parse_i64(text, 0, INT64_MAX >> shift, &v);
	if (r < 0)
		return r;
	*ret = v << shift;
	return 0;
}

bool mo_name_valid(const char *s)
{
	static const char first[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t n;

	if (!s || !*s || !strchr(first, *s))
		return false;
	n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
	return n <= 63 && s[n] == 0;
}

/* Edits between a and b, or some number of at least `enough`; a swap of neighbours is one edit.
 * Both at most NEAR_MISS_MAX long. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb, size_t enough)
{
	size_t rows[3][NEAR_MISS_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2], least = 0, least_before;

	for (size_t j = 0; j <= nb; j++)
		last[j] = before[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *t = before;

		/* farther from the diagonal there are `enough` edits already */
		size_t from = i > enough ? i - enough : 1, to = MO_MIN(nb, i + enough);

		now[from - 1] = from > 1 ? enough : i;
		least_before = least;
		least = i;
		for (size_t j = from; j <= to; j++) {
			size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);

			d = MO_MIN(d, MO_MIN(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = MO_MIN(d, before[j - 2] + 1);
			now[j] = d;
			least = MO_MIN(least, d);
		}
		if (to < nb)
			now[to + 1] = enough;
		if (MO_MIN(least, least_before) >= enough) /* a swap looks two rows back */
			return enough;
		before = last;
		last = now;
		now = t;
	}
	return last[nb];
}

/* The characters of a word, one bit each (some share one): an edit changes two bits at most, so
 * that most pairs of words need no table of distances. */
static uint64_t characters(const char *s, size_t len)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < len; i++)
		bits |= UINT64_C(1) << (s[i] & 63);
	return bits;
}

const char *mo_near_miss(const char *s, const char *const *names, size_t n)
{
	size_t len = strlen(s), best = 3;
	uint64_t bits = characters(s, len);
	const char *found = NULL;

	mo_assert(names || n == 0);
	if (len > NEAR_MISS_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t name_len = strlen(names[i]), d;

		if (name_len == len && strcasecmp(s, names[i]) == 0)
			return names[i];
		if (name_len > NEAR_MISS_MAX || name_len > len + 2 || len > name_len + 2)
			continue;
		if ((size_t)__builtin_popcountll(bits ^ characters(names[i], name_len)) >= 2 * best)
			continue;
		d = edit_distance(s, len, names[i], name_len, best);
		if (d < best && 2 * d < name_len) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

/* Days since 1970-01-01 of a Gregorian date, and back: H. Hinnant, "chrono-Compatible Low-Level
 * Date Algorithms" (2013), for years >= 0. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
	int64_t era, doe;

	y -= m <= 2;
	era = y / 400;
	doe = (y - era * 400) * 365 + (y - era * 400) / 4 - (y - era * 400) / 100 +
	      (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + doe - 719468;
}

static void date_of(int64_t days, int64_t *y, int64_t *m, int64_t *d)
{
	int64_t z = days + 719468, era = z / 146097, doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
		doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*d = doy - (153 * mp + 2) / 5 + 1;
	*m = mp < 10 ? mp + 3 : mp - 9;
	*y = yoe + era * 400 + (*m <= 2);
}

/* Written for every sample: snprintf() takes ten times as long. */
static char *put_digits(char *at, int64_t v, int n)
{
	for (int i = n; i-- > 0; v /= 10)
		at[i] = (char)('0' + v % 10);
	return at + n;
}

const char *mo_time_format(int64_t time_us, char buf[static 32])
{
	int64_t ms, days, y, m, d;

	time_us = MO_MIN(MO_MAX(time_us, TIME_MIN_US), MO_TIME_MOST);
	days = time_us / 86400000000;
	if (time_us % 86400000000 < 0)
		days--;
	ms = (time_us - days * 86400000000) / 1000;
	date_of(days, &y, &m, &d);
	const struct {
		int64_t value;
		int digits;
		char after;
	} parts[] = {
		{ y, 4, '-' },
		{ m, 2, '-' },
		{ d, 2, 'T' },
		{ ms / 3600000, 2, ':' },
		{ ms / 60000 % 60, 2, ':' },
		{ ms / 1000 % 60, 2, '.' },
		{ ms % 1000, 3, 'Z' },
	};
	char *at = buf;
	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		at = put_digits(at, parts[i].value, parts[i].digits);
		*at++ = parts[i].after;
	}
	*at = 0;
	return buf;
}

int mo_time_parse(const char *s, int64_t *ret_us)
{
	static const char shape[] = "0000-00-00T00:00:00";
	int64_t part[6] = { 0 }, y, m, d, days, us = 0, scale = 100000;
	size_t n = 0, i;

	assert(ret_us);
	for (i = 0; shape[i]; i++) {
		if (shape[i] != '0') {
			if (s[i] != shape[i])
				return -EINVAL;
			n++;
		} else {
			if (!is_digit(s[i]))
				return -EINVAL;
			part[n] = part[n] * 10 + (s[i] - '0');
		}
	}
	if (s[i] == '.') {
		if (!is_digit(s[++i]))
			return -EINVAL;
		for (; is_digit(s[i]); i++, scale /= 10)
			us += (s[i] - '0') * scale;
	}
	if (s[i] != 'Z' || s[i + 1])
		return -EINVAL;
	if (part[0] < 1 || part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 ||
	    part[3] > 23 || part[4] > 59 || part[5] > 59)
		return -ERANGE;
	days = days_of(part[0], part[1], part[2]);
	date_of(days, &y, &m, &d);
	if (d != part[2]) /* 30 February */
		return -ERANGE;
	*ret_us = ((days * 24 + part[3]) * 60 + part[4]) * 60000000 + part[5] * 1000000 + us;
	return 0;
}
