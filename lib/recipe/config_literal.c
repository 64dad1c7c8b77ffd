/* Python's literals by recursive descent (config_literal.h). What has no value in YAML (bytes,
 * complex numbers) and characters by their Unicode name are no literal here, so they stay the
 * text that they are. */
#include "lib/recipe/config_literal.h"

#include <string.h>

#include "lib/recipe/config_scalar.h"
#include "lib/recipe/quoted.h"

#define LITERAL_DEPTH_MAX CONFIG_DEPTH_MAX
#define DIGITS "0123456789"

struct scan {
	const char *s;
	struct config_place place;
	size_t depth, values;
};

static struct config_value *any(struct scan *l);

static void blanks(struct scan *l)
{
	l->s += strspn(l->s, " \t\r\n\f");
}

static bool take(struct scan *l, char c)
{
	blanks(l);
	if (*l->s != c)
		return false;
	l->s++;
	return true;
}

/* A character by its number: \x41, \u00e9, \U0001f600, \101. */
static bool numbered(struct scan *l, struct mo_buf *b)
{
	size_t n = *l->s == 'x' ? 2 : *l->s == 'u' ? 4 : *l->s == 'U' ? 8 : 0;
	uint32_t c = 0;

	if (n && !quoted_hex(l->s + 1, n, &c))
		return false;
	l->s += n ? 1 + n : 0;
	for (size_t i = 0; !n && i < 3 && *l->s >= '0' && *l->s <= '7'; i++)
		c = c * 8 + (uint32_t)(*l->s++ - '0');
	quoted_add(c, b);
	return c;
}

static bool escape(struct scan *l, struct mo_buf *b)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	const char *known = *l->s ? strchr(from, *l->s) : NULL;

	if (*l->s == '\n') {
		l->s++;
		return true;
	}
	if (known) {
		mo_buf_add(b, &to[known - from], 1);
		l->s++;
		return true;
	}
	if (*l->s && strchr("xuU01234567", *l->s))
		return numbered(l, b);
	if (!*l->s || *l->s == 'N')
		return false;
	mo_buf_str(b, "\\"); /* Python keeps the backslash of an escape that it does not know */
	return true;
}

/* Behind the letter of r'..' or u'..'; s itself when there is none. */
static const char *after_prefix(const char *s)
{
	return *s && strchr("rRuU", *s) && (s[1] == '\'' || s[1] == '"') ? s + 1 : s;
}

static struct config_value *text(struct scan *l)
{
	struct mo_buf b = { 0 };
	bool good = true;

	while (good && *after_prefix(l->s) && strchr("'\"", *after_prefix(l->s))) {
		bool raw = *l->s == 'r' || *l->s == 'R'; /* texts beside each other are one */

		l->s = after_prefix(l->s);
		char quote = *l->s++;

		while (good && *l->s && *l->s != quote) {
			if (*l->s == '\n') {
				good = false;
			} else if (*l->s == '\\' && !raw) {
				l->s++;
				good = escape(l, &b);
			} else {
				size_t n = *l->s == '\\' && l->s[1] ? 2 : 1;

				mo_buf_add(&b, l->s, n);
				l->s += n;
			}
		}
		good = good && *l->s == quote;
		l->s += good;
		blanks(l);
	}
	_cleanup_(mo_freep) char *joined = mo_buf_take(&b);

	return good ? config_value_new(CONFIG_TEXT, joined, l->place) : NULL;
}

/* Behind digits with single underscores between them; s itself when there are none. */
static const char *grouped(const char *s)
{
	while (strspn(s, DIGITS)) {
		s += strspn(s, DIGITS);
		if (*s != '_' || !strspn(s + 1, DIGITS))
			break;
		s++;
	}
	return s;
}

/* 0x1f, 0o17, 0b11 behind its sign, of at most 64 bits. */
static struct config_value *based(struct scan *l, const char *digits)
{
	static const char all[] = "0123456789abcdef";
	char letter = (char)(digits[1] | 0x20);
	unsigned base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
	bool minus = *l->s == '-', any = false;
	uint64_t v = 0;

	for (digits += 2;; digits++) {
		const char *end = *digits == '_' ? digits + 1 : digits;
		const char *d = *end ? strchr(all, *end | 0x20) : NULL;

		if (!d || (unsigned)(d - all) >= base)
			break;
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (unsigned)(d - all), &v))
			return NULL;
		digits = end;
		any = true;
	}
	_cleanup_(mo_freep) char *shown =
		mo_printf("%s%llu", minus && v ? "-" : "", (unsigned long long)v);

	l->s = digits;
	return any ? config_value_new(CONFIG_INT, shown, l->place) : NULL;
}

static struct config_value *number(struct scan *l)
{
	const char *begin = l->s, *digits, *end;
	bool real;

	while (*l->s == '-' || *l->s == '+')
		l->s++;
	if (l->s > begin + 1)
		return NULL;
	digits = l->s;
	if (*digits == '0' && digits[1] && strchr("xXoObB", digits[1])) {
		l->s = begin;
		return based(l, digits);
	}
	end = grouped(digits);
	real = *end == '.';
	if (real)
		end = grouped(end + 1);
	if (end == digits || (real && end == digits + 1))
		return NULL;
	if (*end == 'e' || *end == 'E') {
		const char *power = end + 1 + (end[1] == '-' || end[1] == '+');

		if (!strspn(power, DIGITS))
			return NULL;
		end = grouped(power);
		real = true;
	}
	if (!real && *digits == '0' && strspn(digits, "0_") != (size_t)(end - digits))
		return NULL; /* 010 is no number in Python */
	_cleanup_(mo_freep) char *word = mo_strndup(begin, (size_t)(end - begin));
	_cleanup_(mo_freep) char *whole = config_int_text(word);

	l->s = end;
	return real ? config_real_value(word, l->place)
		    : config_value_new(CONFIG_INT, whole, l->place);
}

static struct config_value *name(struct scan *l)
{
	static const struct {
		const char *word;
		enum config_kind kind;
		const char *text;
	} names[] = {
		{ "True", CONFIG_BOOL, "true" },
		{ "False", CONFIG_BOOL, "false" },
		{ "None", CONFIG_NULL, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		size_t n = strlen(names[i].word);

		if (strncmp(l->s, names[i].word, n) == 0) {
			l->s += n;
			return config_value_new(names[i].kind, names[i].text, l->place);
		}
	}
	return NULL;
}

/* What stands between the brackets, up to `close`. A map has a colon behind each first value. */
static struct config_value *collection(struct scan *l, char close)
{
	_cleanup_(config_value_freep) struct config_value *v =
		config_value_new(close == '}' ? CONFIG_MAP : CONFIG_LIST, NULL, l->place);
	bool comma = true, set = false;

	while (!take(l, close)) {
		_cleanup_(config_value_freep) struct config_value *first = comma ? any(l) : NULL;

		if (!first)
			return NULL;
		if (close == '}' && !set && take(l, ':')) {
			struct config_value *value = any(l);

			if (!value || first->kind == CONFIG_LIST || first->kind == CONFIG_MAP) {
				config_value_free(value);
				return NULL;
			}
			config_value_free(config_take(v, first->text ? first->text : "None"));
			config_put(v, first->text ? first->text : "None", value)->no_text =
				first->kind != CONFIG_TEXT;
		} else if (close == '}' && v->kind == CONFIG_MAP && v->n) {
			return NULL;
		} else {
			set = close == '}';
			v->kind = CONFIG_LIST;
			config_append(v, TAKE_PTR(first));
		}
		comma = take(l, ',');
	}
	if (close == ')' && v->n == 1 && !comma) { /* (x) is x */
		struct config_value *only = v->items[0].value;

		v->items[0].value = NULL;
		return only;
	}
	return TAKE_PTR(v);
}

static struct config_value *any(struct scan *l)
{
	struct config_value *v = NULL;

	blanks(l);
	if (!*l->s || ++l->values > CONFIG_KEYS_MAX)
		return NULL;
	if (strchr("[({", *l->s)) {
		char close = *l->s == '[' ? ']' : *l->s == '(' ? ')' : '}';

		l->s++;
		if (++l->depth <= LITERAL_DEPTH_MAX)
			v = collection(l, close);
		l->depth--;
	} else if (strchr("'\"", *after_prefix(l->s))) {
		v = text(l);
	} else if (strchr("+-." DIGITS, *l->s)) {
		v = number(l);
	} else {
		v = name(l);
	}
	blanks(l);
	return v;
}

struct config_value *config_literal(const char *text_of, struct config_place place)
{
	struct scan l = { .s = text_of, .place = place };
	_cleanup_(config_value_freep) struct config_value *v = any(&l);

	if (*l.s == '#')
		l.s += strcspn(l.s, "\n");
	return v && !*l.s ? TAKE_PTR(v) : NULL;
}
