/* Python's literals by recursive descent (config_literal.h). What is seldom (bytes, complex numbers, escapes by name) is no
 * literal here, so it stays the text that it is. */
#include "lib/recipe/config_literal.h"

#include <string.h>

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
	if (!*l->s || strchr("xuUN01234567", *l->s))
		return false;
	mo_buf_str(b, "\\"); /* Python keeps the backslash of an escape that it does not know */
	return true;
}

static struct config_value *text(struct scan *l)
{
	struct mo_buf b = { 0 };
	bool good = true;

	while (good && (*l->s == '\'' || *l->s == '"')) { /* texts beside each other are one */
		char quote = *l->s++;

		while (good && *l->s && *l->s != quote) {
			if (*l->s == '\n') {
				good = false;
			} else if (*l->s == '\\') {
				l->s++;
				good = escape(l, &b);
			} else {
				mo_buf_add(&b, l->s++, 1);
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

static struct config_value *number(struct scan *l)
{
	const char *begin = l->s, *digits, *end;
	bool real;

	while (*l->s == '-' || *l->s == '+')
		l->s++;
	if (l->s > begin + 1)
		return NULL;
	digits = l->s;
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
	} else if (*l->s == '\'' || *l->s == '"') {
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

	return v && !*l.s ? TAKE_PTR(v) : NULL;
}
