/* Is a word a date or a time of YAML 1.1, by the pattern of PyYAML's resolver? */
#include "lib/recipe/config_date.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"

size_t config_some_digits(const char *s, size_t least, size_t most)
{
	size_t n = strspn(s, DIGITS);

	return n >= least && n <= most ? n : 0;
}

static int64_t number_at(const char *s, size_t n)
{
	int64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v * 10 + (s[i] - '0');
	return v;
}

/* Behind hh:mm:ss[.fraction] [zone]; NULL when it is none. */
static const char *after_time(const char *s, bool *ret_valid)
{
	size_t hour = config_some_digits(s, 1, 2);

	if (!hour || s[hour] != ':' || config_some_digits(s + hour + 1, 2, 2) != 2 ||
	    s[hour + 3] != ':' || config_some_digits(s + hour + 4, 2, 2) != 2)
		return NULL;
	*ret_valid = *ret_valid && number_at(s, hour) < 24 && number_at(s + hour + 1, 2) < 60 &&
		     number_at(s + hour + 4, 2) < 60;
	s += hour + 6;
	if (*s == '.')
		s += 1 + strspn(s + 1, DIGITS);
	const char *zone = s + strspn(s, " \t");

	if (*zone == 'Z')
		return zone + 1;
	if (*zone != '-' && *zone != '+')
		return s;
	size_t n = config_some_digits(zone + 1, 1, 2);

	if (!n)
		return s;
	zone += 1 + n;
	if (*zone == ':' && config_some_digits(zone + 1, 2, 2))
		return zone + 3;
	return config_some_digits(zone, 2, 2) ? zone + 2 : zone;
}

int config_yaml_date(const char *text, struct config_place place, struct config_value **ret,
		     struct mo_error *err)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const char *s = text;

	if (config_some_digits(s, 4, 4) != 4 || s[4] != '-')
		return 0;
	size_t m = config_some_digits(s + 5, 1, 2);

	if (!m || s[5 + m] != '-')
		return 0;
	size_t d = config_some_digits(s + 6 + m, 1, 2);
	const char *end = s + 6 + m + d;
	int64_t year = number_at(s, 4), month = number_at(s + 5, m), day = number_at(s + 6 + m, d);
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	bool valid =
		year > 0 && month >= 1 && month <= 12 && day >= 1 &&
		day <= (month >= 1 && month <= 12 ? days[month - 1] + (month == 2 && leap) : 0);

	if (!d || (!*end && (m != 2 || d != 2)))
		return 0;
	if (*end) {
		size_t gap = *end == 'T' || *end == 't' ? 1 : strspn(end, " \t");

		end = gap ? after_time(end + gap, &valid) : NULL;
		if (!end || *end)
			return 0;
	}
	if (!valid)
		return mo_error_set(err, -EINVAL, "'%.40s' has the form of a date, and is none",
				    text);
	*ret = config_value_new(CONFIG_DATE, text, place);
	return 1;
}
