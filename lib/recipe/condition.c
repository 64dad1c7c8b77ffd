/* Conditions of engine files on values as people write them, and flags that are the same however
 * they are written. */
#include "lib/recipe/condition.h"

#include <math.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/base/util.h"
#include "lib/recipe/features.h"

bool flag_same(const char *a, const char *b, size_t n_b)
{
	while (*a == '-')
		a++;
	while (n_b && *b == '-') {
		b++;
		n_b--;
	}
	for (; n_b && *a && (*a == *b || (strchr("-_", *a) && strchr("-_", *b))); a++, b++)
		n_b--;
	return !n_b && (!*a || *a == '=');
}

bool condition_number(const char *text, double *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf digits = { 0 };
	static const struct {
		const char *prefix;
		int bits;
	} bases[] = { { "0x", 4 }, { "0o", 3 }, { "0b", 1 } };
	const char *s = text + strspn(text, " +");

	for (size_t i = 0; i < ELEMENTSOF(bases); i++) {
		if (strncasecmp(s, bases[i].prefix, 2) != 0)
			continue;
		double v = 0;

		for (s += 2; *s; s++) {
			int digit = *s >= '0' && *s <= '9' ? *s - '0'
				    : (*s | 0x20) >= 'a' && (*s | 0x20) <= 'f'
					    ? (*s | 0x20) - 'a' + 10
					    : 99;

			if (*s == '_')
				continue;
			if (digit >= 1 << bases[i].bits)
				return false;
			v = v * (1 << bases[i].bits) + digit;
		}
		*ret = v;
		return true;
	}
	for (; *s; s++)
		if (*s != '_')
			mo_buf_add(&digits, s, 1);
	return digits.len && mo_parse_double(digits.data, ret) == 0;
}

static bool says_nothing(const char *value)
{
	static const char *const nothing[] = { "", "none", "null", "~" };

	for (size_t i = 0; i < ELEMENTSOF(nothing); i++)
		if (strcasecmp(nothing[i], value) == 0)
			return true;
	return false;
}

/* Is the value what the word, true or false, means? */
static bool bool_holds(bool word, const char *value)
{
	static const char *const spellings[2][6] = { { "false", "0", "no", "off", "n", "f" },
						     { "true", "1", "yes", "on", "y", "t" } };

	for (size_t i = 0; i < ELEMENTSOF(spellings[0]); i++)
		if (strcasecmp(spellings[word][i], value) == 0)
			return true;
	return !word && says_nothing(value);
}

static bool word_holds(const char *want, const char *value)
{
	double limit, have;

	if (mo_streq(want, "missing"))
		return false;
	if (mo_streq(want, "given"))
		return feature_asks(value);
	if (*want == '%') /* a multiple; of what is not known everything is */
		return !want[1] ||
		       (condition_number(want + 1, &limit) && condition_number(value, &have) &&
			limit > 0 && fmod(have, limit) == 0);
	if (*want == '>' || *want == '<') {
		if (mo_parse_double(want + 1, &limit) < 0 || !condition_number(value, &have))
			return false;
		return *want == '>' ? have > limit : have < limit;
	}
	return mo_streq(want, "true") || mo_streq(want, "false")
		       ? bool_holds(mo_streq(want, "true"), value)
		       : mo_streq(want, value);
}

static bool has_word(const char *want, const char *word)
{
	const char *at = strstr(want, word);

	return at && (at == want || at[-1] == '|') &&
	       (!at[strlen(word)] || at[strlen(word)] == '|');
}

bool condition_unreadable(const char *want, const char *value)
{
	double number;

	return (*want == '>' || *want == '<') && value && !says_nothing(value) &&
	       !condition_number(value, &number);
}

bool condition_holds(const char *want, const char *value)
{
	if (!value)
		return has_word(want, "missing");
	if (*want == '!')
		return !condition_holds(want + 1, value);
	for (const char *s = want; *s;) {
		size_t n = strcspn(s, "|");
		_cleanup_(mo_freep) char *word = mo_strndup(s, n);

		if (word_holds(word, value))
			return true;
		s += n + (s[n] == '|');
	}
	return false;
}
