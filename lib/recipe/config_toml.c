/* See config_toml.h. A text ends at its first NUL: the caller has checked for control characters.
 * Tables that are written twice are put together, as most writers mean them; a key that is given
 * twice is an error. */
#include "lib/recipe/config_toml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"

struct toml {
	const char *s;
	struct config_place at; /* its line is the one that is read */
	struct mo_error *err;
	size_t values, depth;
};

static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

/* Always false. */
static _printf_(2, 3) bool wrong(struct toml *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	mo_error_set(t->err, -EINVAL, "%s", text);
	free(text);
	return false;
}

/* What stands here, as far as its line goes. Always false. */
static bool unexpected(struct toml *t, const char *wanted)
{
	size_t n = strcspn(t->s, "\r\n");

	if (!n)
		return wrong(t, "expected %s, got the end of the %s", wanted,
			     *t->s ? "line" : "file");
	return wrong(t, "expected %s, got '%.*s'", wanted, (int)MO_MIN(n, (size_t)20), t->s);
}

static void blanks(struct toml *t)
{
	t->s += strspn(t->s, " \t");
}

/* Blanks, ends of lines and comments. */
static void gaps(struct toml *t)
{
	for (;;) {
		t->s += strspn(t->s, " \t\r");
		if (*t->s == '#')
			t->s += strcspn(t->s, "\n");
		if (*t->s != '\n')
			return;
		t->at.line++;
		t->s++;
	}
}

static bool end_of_line(struct toml *t)
{
	blanks(t);
	if (*t->s == '#')
		t->s += strcspn(t->s, "\n");
	t->s += *t->s == '\r';
	return !*t->s || *t->s == '\n' || unexpected(t, "the end of the line");
}

static void utf8(uint32_t c, struct mo_buf *b)
{
	static const struct {
		uint32_t below;
		unsigned char first;
		int more;
	} forms[] = {
		{ 0x80, 0, 0 }, { 0x800, 0xc0, 1 }, { 0x10000, 0xe0, 2 }, { 0x110000, 0xf0, 3 }
	};
	size_t i = 0;

	while (c >= forms[i].below)
		i++;
	char out[4] = { (char)(forms[i].first | (c >> (6 * forms[i].more))) };

	for (int k = 1; k <= forms[i].more; k++)
		out[k] = (char)(0x80 | ((c >> (6 * (forms[i].more - k))) & 0x3f));
	mo_buf_add(b, out, (size_t)forms[i].more + 1);
}

/* Behind a backslash. */
static bool escape(struct toml *t, struct mo_buf *b)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *at = *t->s ? strchr(from, *t->s) : NULL;
	size_t digits = *t->s == 'u' ? 4 : *t->s == 'U' ? 8 : 0;
	uint32_t c = 0;

	if (at) {
		mo_buf_add(b, &to[at - from], 1);
		t->s++;
		return true;
	}
	if (!digits || strspn(t->s + 1, "0123456789abcdefABCDEF") < digits)
		return wrong(t, "an unknown escape: \\%.1s", t->s);
	for (size_t i = 1; i <= digits; i++) {
		char d = t->s[i];

		c = c << 4 | (uint32_t)(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
	}
	if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return wrong(t, "an escape that is no character");
	utf8(c, b);
	t->s += digits + 1;
	return true;
}

/* At its first quote. */
static bool string(struct toml *t, struct mo_buf *b)
{
	char quote = *t->s;
	const char triple[] = { quote, quote, quote, 0 };
	bool lines = mo_starts_with(t->s, triple);
	size_t n = lines ? 3 : 1;

	t->s += n;
	if (lines && (*t->s == '\n' || mo_starts_with(t->s, "\r\n"))) {
		t->s += 1 + (*t->s == '\r');
		t->at.line++;
	}
	mo_buf_str(b, "");
	while (strncmp(t->s, triple, n) != 0) {
		if (!*t->s || (*t->s == '\n' && !lines))
			return wrong(t, "a text without its closing quote");
		if (b->len > CONFIG_TEXT_MAX)
			return wrong(t, "a text of more than %d bytes", CONFIG_TEXT_MAX);
		t->at.line += *t->s == '\n';
		if (*t->s == '\\' && quote == '"') {
			t->s++;
			if (lines && (t->s[strspn(t->s, " \t\r")] == '\n'))
				for (; *t->s && strchr(" \t\r\n", *t->s); t->s++)
					t->at.line += *t->s == '\n';
			else if (!escape(t, b))
				return false;
			continue;
		}
		mo_buf_add(b, t->s++, 1);
	}
	t->s += n;
	for (size_t i = 0; lines && i < 2 && *t->s == quote; i++) /* """a"""" ends with a quote */
		mo_buf_add(b, t->s++, 1);
	return true;
}

/* One part of a key. */
static char *part(struct toml *t)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	size_t n = strspn(t->s, bare);

	if (*t->s == '"' || *t->s == '\'') {
		if (!string(t, &b))
			return NULL;
		return mo_buf_take(&b);
	}
	if (!n) {
		unexpected(t, "a key");
		return NULL;
	}
	t->s += n;
	return mo_strndup(t->s - n, n);
}

/* The map of `a.b.`, made where there is none; *ret_last: the part behind. */
static struct config_value *walk(struct toml *t, struct config_value *map, char **ret_last)
{
	for (size_t depth = 1;; depth++) {
		_cleanup_(mo_freep) char *key = part(t);

		if (!key)
			return NULL;
		if (depth > CONFIG_DEPTH_MAX) {
			wrong(t, "a key of more than %d parts", CONFIG_DEPTH_MAX);
			return NULL;
		}
		blanks(t);
		if (*t->s != '.') {
			*ret_last = TAKE_PTR(key);
			return map;
		}
		t->s++;
		blanks(t);
		struct config_value *below = config_get(map, key);

		if (!below)
			below = config_put(map, key, config_value_new(CONFIG_MAP, NULL, t->at))
					->value;
		if (below->kind == CONFIG_LIST && below->n) /* the last of [[a]] */
			below = below->items[below->n - 1].value;
		if (below->kind != CONFIG_MAP || ++t->values > CONFIG_VALUES_MAX) {
			wrong(t, "'%.60s' is no table", key);
			return NULL;
		}
		map = below;
	}
}

static struct config_value *value(struct toml *t);

static bool pair(struct toml *t, struct config_value *table)
{
	_cleanup_(mo_freep) char *key = NULL;
	struct config_value *map = walk(t, table, &key);

	if (!map)
		return false;
	if (*t->s != '=')
		return wrong(t, "expected = behind '%.60s'", key);
	t->s++;
	blanks(t);
	if (config_get(map, key))
		return wrong(t, "'%.60s' is given twice", key);
	if (map->n >= CONFIG_KEYS_MAX)
		return wrong(t, "more than %d keys in one table", CONFIG_KEYS_MAX);
	struct config_value *v = value(t);

	if (v)
		config_put(map, key, v);
	return v;
}

/* [a, b] and {a = b}: until the closing one. */
static bool items(struct toml *t, struct config_value *v)
{
	bool list = v->kind == CONFIG_LIST;
	char close = list ? ']' : '}';

	for (t->s++;;) {
		list ? gaps(t) : blanks(t);
		if (*t->s == close && (list || !v->n || t->s[-1] != ','))
			break;
		struct config_value *item = list ? value(t) : NULL;

		if (list ? !item : !pair(t, v))
			return false;
		if (list)
			config_append(v, item);
		list ? gaps(t) : blanks(t);
		if (*t->s == close)
			break;
		if (*t->s != ',')
			return unexpected(t, list ? ", or ]" : ", or }");
		t->s++;
	}
	t->s++;
	return true;
}

/* 0x1f, 0o17, 0b1 in decimal digits; NULL: it is none. */
static char *based(const char *s)
{
	static const char letters[] = "xob";
	static const int bases[] = { 16, 8, 2 };
	const char *letter = s[0] == '0' && s[1] ? strchr(letters, s[1]) : NULL;
	uint64_t n = 0;

	if (!letter || !s[2])
		return NULL;
	int base = bases[letter - letters];

	for (s += 2; *s; s++) {
		int d = *s >= '0' && *s <= '9'                 ? *s - '0'
			: (*s | 32) >= 'a' && (*s | 32) <= 'f' ? (*s | 32) - 'a' + 10
							       : 99;

		if (*s == '_')
			continue;
		if (d >= base || n > UINT64_MAX / 32)
			return NULL;
		n = n * (uint64_t)base + (uint64_t)d;
	}
	return mo_printf("%llu", (unsigned long long)n);
}

/* Truth values, numbers, dates. */
static struct config_value *word(struct toml *t)
{
	size_t n = strcspn(t->s, ",]}# \t\r\n");
	_cleanup_(mo_freep) char *text = mo_strndup(t->s, MO_MIN(n, (size_t)80)),
				 *number = based(text);
	_cleanup_(mo_buf_done) struct mo_buf plain = { 0 };
	double real;

	for (const char *s = text; *s; s++)
		if (*s != '_')
			mo_buf_add(&plain, s, 1);
	const char *digits = plain.data ? plain.data : "";
	size_t sign = *digits == '-' || *digits == '+';
	bool whole = digits[sign] && !digits[sign + strspn(digits + sign, "0123456789")];

	t->s += n;
	if (mo_streq(text, "true") || mo_streq(text, "false"))
		return config_value_new(CONFIG_BOOL, text, t->at);
	if (number)
		return config_value_new(CONFIG_INT, number, t->at);
	if (whole && (digits[sign] != '0' || !digits[sign + 1])) {
		_cleanup_(mo_freep) char *shown = config_int_text(digits);

		return config_value_new(CONFIG_INT, shown, t->at);
	}
	if (!whole && mo_parse_double(digits + (*digits == '+'), &real) == 0) {
		_cleanup_(mo_freep) char *shown = config_real_text(real);

		return config_value_new(CONFIG_REAL, shown, t->at);
	}
	if (n >= 8 && strspn(text, "0123456789-:.TZtz+") == strlen(text))
		return config_value_new(CONFIG_DATE, text, t->at);
	wrong(t, "'%.40s' is no value of TOML: texts stand in quotes", text);
	return NULL;
}

static struct config_value *value(struct toml *t)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct config_place at = t->at;

	if (++t->values > CONFIG_VALUES_MAX || t->depth >= CONFIG_DEPTH_MAX) {
		wrong(t, "more than %d values, or %d in each other", CONFIG_VALUES_MAX,
		      CONFIG_DEPTH_MAX);
		return NULL;
	}
	if (*t->s == '"' || *t->s == '\'')
		return string(t, &b) ? config_value_new(CONFIG_TEXT, b.data, at) : NULL;
	if (*t->s != '[' && *t->s != '{')
		return word(t);
	_cleanup_(config_value_freep) struct config_value *v =
		config_value_new(*t->s == '[' ? CONFIG_LIST : CONFIG_MAP, NULL, at);

	t->depth++;
	bool good = items(t, v);

	t->depth--;
	return good ? TAKE_PTR(v) : NULL;
}

/* [a.b] and [[a.b]]: the table that follows. */
static struct config_value *header(struct toml *t, struct config_value *root)
{
	bool many = t->s[1] == '[';
	_cleanup_(mo_freep) char *key = NULL;

	t->s += 1 + many;
	blanks(t);
	struct config_value *map = walk(t, root, &key), *there = map ? config_get(map, key) : NULL;

	if (!map)
		return NULL;
	if (!mo_starts_with(t->s, many ? "]]" : "]")) {
		wrong(t, "expected %s behind the table's name", many ? "]]" : "]");
		return NULL;
	}
	t->s += 1 + many;
	if (!end_of_line(t))
		return NULL;
	if (there && there->kind != (many ? CONFIG_LIST : CONFIG_MAP)) {
		wrong(t, "'%.60s' is something else already", key);
		return NULL;
	}
	if (!there)
		there = config_put(map, key,
				   config_value_new(many ? CONFIG_LIST : CONFIG_MAP, NULL, t->at))
				->value;
	if (!many)
		return there;
	config_append(there, config_value_new(CONFIG_MAP, NULL, t->at));
	return there->items[there->n - 1].value;
}

struct config_value *config_toml(const char *text, size_t n, struct config_place at,
				 int64_t *ret_line, struct mo_error *err)
{
	struct toml t = { .s = text, .at = at, .err = err };
	_cleanup_(config_value_freep) struct config_value *root = NULL;
	bool good = true;

	t.at.line = 1;
	root = config_value_new(CONFIG_MAP, NULL, t.at);
	struct config_value *table = root;

	for (gaps(&t); *t.s && good;) {
		if (*t.s == '[')
			good = (table = header(&t, root));
		else
			good = pair(&t, table) && end_of_line(&t);
		if (good) /* the line of what is wrong stays */
			gaps(&t);
	}
	if (good && (size_t)(t.s - text) < n)
		good = wrong(&t, "a NUL byte");
	*ret_line = t.at.line;
	return good ? TAKE_PTR(root) : NULL;
}
