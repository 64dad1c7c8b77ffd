/* Words -> typed values (config_scalar.h). The patterns are those of PyYAML's resolver and of
 * Primus' yaml_loader.py and arg_utils.py, written out: each is a handful of spans. */
#include "lib/recipe/config_scalar.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "lib/base/parse.h"
#include "lib/recipe/config_date.h"
#include "lib/recipe/config_literal.h"

#define DIGITS "0123456789"
#define DIGITS_ "0123456789_"
#define DIGITS_MOST 4300 /* of one number: what Python reads */

static bool among(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static const char *after_sign(const char *s)
{
	return s + (*s == '-' || *s == '+');
}

/* Behind :MM parts of base 60; NULL when there is none. */
static const char *after_sixties(const char *s)
{
	const char *begin = s;

	while (*s == ':' && strspn(s + 1, DIGITS)) {
		size_t n = strspn(s + 1, DIGITS);

		if (n > 2 || (n == 2 && s[1] > '5'))
			return NULL;
		s += 1 + n;
	}
	return s > begin ? s : NULL;
}

/* Behind [eE][-+]digits, or s itself. */
static const char *after_exponent(const char *s)
{
	if ((*s != 'e' && *s != 'E') || (s[1] != '-' && s[1] != '+') || !strspn(s + 2, DIGITS))
		return s;
	return s + 2 + strspn(s + 2, DIGITS);
}

static char *without_underscores(const char *s)
{
	struct mo_buf b = { 0 };

	for (; *s; s++)
		if (*s != '_')
			mo_buf_add(&b, s, 1);
	return mo_buf_take(&b);
}

static struct config_value *real_value(double v, struct config_place place)
{
	_cleanup_(mo_freep) char *text = config_real_text(v);

	return config_value_new(CONFIG_REAL, text, place);
}

struct config_value *config_real_value(const char *digits, struct config_place place)
{
	_cleanup_(mo_freep) char *text = without_underscores(digits);
	double v = *text == '-' ? -__builtin_inf() : __builtin_inf();

	if (mo_parse_double(text, &v) == -EINVAL)
		return NULL;
	return real_value(v, place);
}

static struct config_value *int_value(const char *digits, struct config_place place)
{
	_cleanup_(mo_freep) char *text = config_int_text(digits);

	return config_value_new(CONFIG_INT, text, place);
}

/* The sum of parts of base 60, the last of which may have a fraction. */
static bool sixties(const char *s, double *ret)
{
	double sum = 0, part;

	for (;;) {
		size_t n = strcspn(s, ":");
		_cleanup_(mo_freep) char *text = mo_strndup(s, n);

		if (mo_parse_double(*text ? text : "0", &part) < 0)
			return false;
		sum = sum * 60 + part;
		s += n;
		if (!*s++)
			break;
	}
	*ret = sum;
	return true;
}

/* 1: it is one; 0: it is none; else err. */
static int yaml_real(const char *text, struct config_place place, struct config_value **ret)
{
	static const char *const infinite[] = { ".inf", ".Inf", ".INF", NULL };
	static const char *const nan[] = { ".nan", ".NaN", ".NAN", NULL };
	const char *s = after_sign(text), *part = s + strspn(s, DIGITS_), *end;
	double v;

	if (among(s, infinite) || among(text, nan)) {
		*ret = real_value(among(text, nan) ? __builtin_nan("")
				  : *text == '-'   ? -__builtin_inf()
						   : __builtin_inf(),
				  place);
		return 1;
	}
	if (strspn(s, DIGITS) && *part == '.') {
		end = after_exponent(part + 1 + strspn(part + 1, DIGITS_));
	} else if (*text == '.' && strspn(text + 1, DIGITS)) {
		end = after_exponent(text + 1 + strspn(text + 1, DIGITS_));
	} else if (strspn(s, DIGITS) && (end = after_sixties(part)) && *end == '.' &&
		   !end[1 + strspn(end + 1, DIGITS_)]) {
		_cleanup_(mo_freep) char *digits = without_underscores(s);

		if (!sixties(digits, &v))
			return 0;
		*ret = real_value(*text == '-' ? -v : v, place);
		return 1;
	} else {
		return 0;
	}
	return !*end && (*ret = config_real_value(text, place)) ? 1 : 0;
}

/* Digits of a base as a number; false: none, or more than 64 bits. */
static bool based(const char *s, unsigned base, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t v = 0;
	bool any = false;

	for (; *s; s++) {
		if (*s == '_')
			continue;
		char c = *s >= 'A' && *s <= 'F' ? (char)(*s - 'A' + 'a') : *s;
		const char *digit = strchr(digits, c);

		if (!digit || (unsigned)(digit - digits) >= base ||
		    __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (unsigned)(digit - digits), &v))
			return false;
		any = true;
	}
	*ret = v;
	return any;
}

static int based_value(const char *text, const char *digits, unsigned base,
		       struct config_place place, struct config_value **ret, struct mo_error *err)
{
	uint64_t v;

	if (!based(digits, base, &v))
		return mo_error_set(err, -EINVAL, "'%.60s' is no whole number of at most 64 bits",
				    text);
	_cleanup_(mo_freep) char *shown =
		mo_printf("%s%llu", *text == '-' && v ? "-" : "", (unsigned long long)v);

	*ret = config_value_new(CONFIG_INT, shown, place);
	return 1;
}

static int yaml_int(const char *text, struct config_place place, struct config_value **ret,
		    struct mo_error *err)
{
	const char *s = after_sign(text), *end;

	if (s[0] == '0' && s[1] == 'b' && s[2] && !s[2 + strspn(s + 2, "01_")])
		return based_value(text, s + 2, 2, place, ret, err);
	if (s[0] == '0' && s[1] == 'x' && s[2] && !s[2 + strspn(s + 2, DIGITS_ "abcdefABCDEF")])
		return based_value(text, s + 2, 16, place, ret, err);
	if (s[0] == '0' && s[1] && !s[strspn(s, "01234567_")])
		return based_value(text, s, 8, place, ret, err);
	if (!strspn(s, DIGITS) || (*s == '0' && s[1]))
		return 0;
	end = s + strspn(s, DIGITS_);
	if (!*end) {
		if (strlen(s) > DIGITS_MOST)
			return mo_error_set(err, -EINVAL, "a whole number of more than %d digits",
					    DIGITS_MOST);
		*ret = int_value(text, place);
		return 1;
	}
	end = after_sixties(end);
	if (!end || *end)
		return 0;
	_cleanup_(mo_freep) char *digits = without_underscores(s);
	double v;

	if (!sixties(digits, &v) || v > 9e15)
		return mo_error_set(err, -EINVAL,
				    "'%.60s' is a number of base 60, and larger than any", text);
	_cleanup_(mo_freep) char *shown =
		mo_printf("%s%lld", *text == '-' && v > 0 ? "-" : "", (long long)v);

	*ret = config_value_new(CONFIG_INT, shown, place);
	return 1;
}

static const char *const yes[] = { "yes",  "Yes", "YES", "true", "True",
				   "TRUE", "on",  "On",  "ON",   NULL };
static const char *const no[] = { "no",    "No",  "NO",  "false", "False",
				  "FALSE", "off", "Off", "OFF",   NULL };

struct config_value *config_yaml_scalar(const char *text, struct config_place place,
					struct mo_error *err)
{
	static const char *const null[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const nothing[] = { "=", "<<", NULL };
	struct config_value *v = NULL;

	if (among(text, null))
		return config_value_new(CONFIG_NULL, NULL, place);
	if (among(text, yes) || among(text, no))
		return config_value_new(CONFIG_BOOL, among(text, yes) ? "true" : "false", place);
	if (among(text, nothing)) {
		mo_error_set(err, -EINVAL,
			     "'%s' by itself has no value in YAML 1.1: put it into quotes", text);
		return NULL;
	}
	int r = yaml_real(text, place, &v);

	if (r == 0)
		r = yaml_int(text, place, &v, err);
	if (r == 0)
		r = config_yaml_date(text, place, &v, err);
	return r == 0 ? config_value_new(CONFIG_TEXT, text, place) : r > 0 ? v : NULL;
}

/* Python's float() of a text that YAML itself would not take for a number: 4, 1e-5. */
static struct config_value *any_real(const char *text, struct config_place place)
{
	const char *s = after_sign(text), *end = s + strspn(s, DIGITS_ ".");

	if (!strspn(s + (*s == '.'), DIGITS))
		return NULL;
	if (*end == 'e' || *end == 'E') {
		end += 1 + (end[1] == '-' || end[1] == '+');
		end = strspn(end, DIGITS) ? end + strspn(end, DIGITS) : s;
	}
	return *end ? NULL : config_real_value(*text == '+' ? s : text, place);
}

struct config_value *config_tagged_scalar(const char *text, enum config_kind kind,
					  struct config_place place, struct mo_error *err)
{
	struct config_value *v = NULL;
	int r = 0;

	for (size_t i = 0; kind == CONFIG_BOOL && yes[i]; i++)
		if (!strcasecmp(text, yes[i]) || (no[i] && !strcasecmp(text, no[i])))
			return config_value_new(CONFIG_BOOL,
						strcasecmp(text, yes[i]) ? "false" : "true", place);
	if (kind == CONFIG_NULL)
		return config_value_new(CONFIG_NULL, NULL, place);
	if (kind == CONFIG_REAL && (r = yaml_real(text, place, &v)) == 0)
		v = any_real(text, place);
	if (kind == CONFIG_INT)
		r = yaml_int(text, place, &v, err);
	if (!v && r >= 0)
		mo_error_set(err, -EINVAL, "'%.40s' is no value of the type that its tag says",
			     text);
	return v;
}

static struct config_value *truth(const char *text, struct config_place place)
{
	bool is_true = strcasecmp(text, "true") == 0;

	if (!is_true && strcasecmp(text, "false") != 0)
		return NULL;
	return config_value_new(CONFIG_BOOL, is_true ? "true" : "false", place);
}

struct config_value *config_replaced_scalar(const char *text, struct config_place place)
{
	const char *s = text + (*text == '-'), *end = s + strspn(s, DIGITS);
	bool whole = end > s && strlen(s) <= DIGITS_MOST;
	struct config_value *v = truth(text, place);

	if (v)
		return v;
	if (whole && !*end)
		return int_value(text, place);
	if (*end == '.')
		end += 1 + strspn(end + 1, DIGITS);
	whole = end > s && !(end == s + 1 && *s == '.');
	if (whole && (*end == 'e' || *end == 'E')) {
		const char *power = after_sign(end + 1);

		end = strspn(power, DIGITS) ? power + strspn(power, DIGITS) : end;
	}
	v = whole && !*end ? config_real_value(text, place) : NULL;
	return v ? v : config_value_new(CONFIG_TEXT, text, place);
}

/* Digits with single underscores between them, as Python takes them; returns what is behind,
 * NULL: none. */
static const char *after_grouped(const char *s)
{
	size_t n = strspn(s, DIGITS);

	if (!n)
		return NULL;
	s += n;
	while (*s == '_') {
		n = strspn(s + 1, DIGITS);
		if (!n)
			return NULL;
		s += 1 + n;
	}
	return s;
}

/* What Python's float() takes, of texts with a dot. */
static bool is_float(const char *s)
{
	s = after_sign(s);
	const char *end = *s == '.' ? s : after_grouped(s);

	if (!end)
		return false;
	if (*end == '.' && strspn(end + 1, DIGITS)) {
		end = after_grouped(end + 1);
		if (!end)
			return false;
	} else if (*end == '.') {
		if (end == s)
			return false;
		end++;
	}
	if (*end == 'e' || *end == 'E')
		end = after_grouped(after_sign(end + 1));
	return end && !*end;
}

struct config_value *config_word_value(const char *word, struct config_place place)
{
	struct config_value *v = truth(word, place);

	if (v)
		return v;
	if (strcmp(word, "None") == 0)
		return config_value_new(CONFIG_NULL, NULL, place);
	if (*word && strchr("[({", *word) && (v = config_literal(word, place)))
		return v;
	if (strchr(word, '.') && is_float(word) && (v = config_real_value(word, place)))
		return v;
	const char *end = after_grouped(after_sign(word));

	if (end && !*end && strlen(word) <= DIGITS_MOST)
		return int_value(word, place);
	return config_value_new(CONFIG_TEXT, word, place);
}
