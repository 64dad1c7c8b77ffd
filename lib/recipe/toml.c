/* See toml.h. Grammar: toml.io/en/v1.0.0, without arrays of tables and dates. */
#include "lib/recipe/toml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"

struct toml {
	const char *p;
	int64_t line;
	struct mo_error *err;
	size_t n_values;
};

static int bad(struct toml *t, const char *what)
{
	return mo_error_set(t->err, -EINVAL, "%lld: %s", (long long)t->line, what);
}

static struct config_place place(const struct toml *t)
{
	return (struct config_place){ .file = 0, .line = t->line, .word = -1 };
}

static void blanks(struct toml *t)
{
	t->p += strspn(t->p, " \t");
}

/* Blanks, ends of lines and comments. */
static void space(struct toml *t)
{
	for (;;) {
		t->p += strspn(t->p, " \t\r");
		if (*t->p == '#')
			t->p += strcspn(t->p, "\n");
		if (*t->p != '\n')
			return;
		t->p++;
		t->line++;
	}
}

static int escape(struct toml *t, struct mo_buf *b)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *at = *t->p ? strchr(from, *t->p) : NULL;

	if (!at)
		return bad(t, "an escape that moectl does not read: use \\\" \\\\ \\n or \\t");
	mo_buf_add(b, &to[at - from], 1);
	t->p++;
	return 0;
}

/* At the quote; "..", '..', """..""", '''..'''. */
static int read_string(struct toml *t, struct mo_buf *b)
{
	char quote = *t->p;
	bool many = t->p[1] == quote && t->p[2] == quote;
	size_t n = many ? 3 : 1;

	t->p += n;
	if (many && *t->p == '\n')
		t->p++, t->line++;
	for (;;) {
		if (!*t->p || (!many && *t->p == '\n'))
			return bad(t, "a text that is not closed");
		if (*t->p == quote && (!many || (t->p[1] == quote && t->p[2] == quote))) {
			t->p += n;
			mo_buf_add(b, "", 1);
			return 0;
		}
		t->line += *t->p == '\n';
		if (*t->p == '\\' && quote == '"') {
			t->p++;
			if (escape(t, b) < 0)
				return -EINVAL;
			continue;
		}
		mo_buf_add(b, t->p++, 1);
		if (b->len > CONFIG_TEXT_MAX)
			return bad(t, "a text of more than 64 kB");
	}
}

static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

static int read_key(struct toml *t, struct mo_buf *b)
{
	size_t n = strspn(t->p, bare);

	if (*t->p == '"' || *t->p == '\'')
		return read_string(t, b);
	if (n == 0)
		return bad(t, "expected a key");
	mo_buf_add(b, t->p, n);
	mo_buf_add(b, "", 1);
	t->p += n;
	return 0;
}

/* a.b.c: the map of a.b, made where it is missing; the last part goes to `last`. */
static int read_path(struct toml *t, struct config_value *map, struct config_value **ret,
		     struct mo_buf *last)
{
	int depth = 0;

	for (;; depth++) {
		mo_buf_done(last);
		if (read_key(t, last) < 0)
			return -EINVAL;
		blanks(t);
		if (*t->p != '.')
			break;
		t->p++;
		blanks(t);
		struct config_value *next = config_get(map, last->data);
		if (!next) {
			next = config_value_new(CONFIG_MAP, NULL, place(t));
			config_put(map, last->data, next);
		}
		if (next->kind != CONFIG_MAP || depth >= CONFIG_DEPTH_MAX ||
		    ++t->n_values > CONFIG_VALUES_MAX)
			return bad(t, "a key below something that is no table");
		map = next;
	}
	*ret = map;
	return 0;
}

static int read_value(struct toml *t, int depth, struct config_value **ret);

static int read_array(struct toml *t, int depth, struct config_value **ret)
{
	_cleanup_(config_value_freep) struct config_value *list =
		config_value_new(CONFIG_LIST, NULL, place(t));

	for (t->p++;;) {
		struct config_value *v = NULL;

		space(t);
		if (*t->p == ']')
			break;
		if (read_value(t, depth + 1, &v) < 0)
			return -EINVAL;
		config_append(list, v);
		space(t);
		if (*t->p == ',')
			t->p++;
		else if (*t->p != ']')
			return bad(t, "expected , or ] in a list");
	}
	t->p++;
	*ret = TAKE_PTR(list);
	return 0;
}

static int read_pair(struct toml *t, int depth, struct config_value *map)
{
	_cleanup_(mo_buf_done) struct mo_buf key = { 0 };
	struct config_value *v = NULL, *to;

	if (read_path(t, map, &to, &key) < 0)
		return -EINVAL;
	blanks(t);
	if (*t->p != '=')
		return bad(t, "expected = behind a key");
	t->p++;
	blanks(t);
	if (config_get(to, key.data))
		return bad(t, "a key that is given twice");
	if (read_value(t, depth, &v) < 0)
		return -EINVAL;
	config_put(to, key.data, v);
	return 0;
}

static int read_table(struct toml *t, int depth, struct config_value **ret)
{
	_cleanup_(config_value_freep) struct config_value *map =
		config_value_new(CONFIG_MAP, NULL, place(t));

	t->p++;
	blanks(t);
	while (*t->p != '}') {
		if (read_pair(t, depth + 1, map) < 0)
			return -EINVAL;
		blanks(t);
		if (*t->p == ',') {
			t->p++;
			blanks(t);
		} else if (*t->p != '}') {
			return bad(t, "expected , or } in a table");
		}
	}
	t->p++;
	*ret = TAKE_PTR(map);
	return 0;
}

static int read_word(struct toml *t, struct config_value **ret)
{
	size_t n = strcspn(t->p, " \t\r\n,]}#");
	_cleanup_(mo_freep) char *word = mo_strndup(t->p, n), *digits = mo_strndup("", 0);
	enum config_kind kind = CONFIG_INT;
	struct mo_buf plain = { 0 };
	double v;

	for (const char *p = word; *p; p++)
		if (*p != '_')
			mo_buf_add(&plain, p, 1);
	mo_buf_add(&plain, "", 1);
	free(digits);
	digits = mo_buf_take(&plain);
	if (mo_streq(word, "true") || mo_streq(word, "false"))
		kind = CONFIG_BOOL;
	else if (*word && !digits[strspn(digits, "+-0123456789")] &&
		 strpbrk(digits, "0123456789") && !strpbrk(digits + 1, "+-"))
		kind = CONFIG_INT;
	else if (strspn(digits, "+-0123456789.eE") == strlen(digits) &&
		 mo_parse_double(digits, &v) == 0)
		kind = CONFIG_REAL;
	else if (mo_streq(digits + strspn(digits, "+-"), "inf") ||
		 mo_streq(digits + strspn(digits, "+-"), "nan"))
		kind = CONFIG_REAL;
	else
		return bad(t, "a value that is no text, number, truth value, list or table (dates "
			      "are not read)");
	t->p += n;
	_cleanup_(mo_freep) char *text = kind == CONFIG_INT ? config_int_text(digits)
					 : kind == CONFIG_REAL && mo_parse_double(digits, &v) == 0
						 ? config_real_text(v)
						 : mo_strdup(digits);
	*ret = config_value_new(kind, text, place(t));
	return 0;
}

static int read_value(struct toml *t, int depth, struct config_value **ret)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (depth > CONFIG_DEPTH_MAX || ++t->n_values > CONFIG_VALUES_MAX)
		return bad(t, "more values, or deeper ones, than a configuration has");
	if (*t->p == '[')
		return read_array(t, depth, ret);
	if (*t->p == '{')
		return read_table(t, depth, ret);
	if (*t->p != '"' && *t->p != '\'')
		return read_word(t, ret);
	struct config_place at = place(t);
	if (read_string(t, &b) < 0)
		return -EINVAL;
	*ret = config_value_new(CONFIG_TEXT, b.data, at);
	return 0;
}

static int read_header(struct toml *t, struct config_value *root, struct config_value **ret)
{
	_cleanup_(mo_buf_done) struct mo_buf key = { 0 };
	struct config_value *map;

	if (t->p[1] == '[')
		return bad(t, "arrays of tables ([[..]]) are not read");
	t->p++;
	blanks(t);
	if (read_path(t, root, &map, &key) < 0)
		return -EINVAL;
	blanks(t);
	if (*t->p != ']')
		return bad(t, "expected ] behind the name of a table");
	t->p++;
	*ret = config_get(map, key.data);
	if (!*ret) {
		*ret = config_value_new(CONFIG_MAP, NULL, place(t));
		config_put(map, key.data, *ret);
	}
	return (*ret)->kind == CONFIG_MAP ? 0 : bad(t, "a table whose name has a value already");
}

int toml_read(const char *text, size_t n, struct config_value **ret, struct mo_error *err)
{
	struct toml t = { .line = 1, .err = err };
	_cleanup_(config_value_freep) struct config_value *root =
		config_value_new(CONFIG_MAP, NULL, place(&t));
	_cleanup_(mo_freep) char *whole = mo_strndup(text, n);
	struct config_value *at = root;

	if (memchr(text, '\0', n) || !mo_utf8_valid(text, n))
		return mo_error_set(err, -EINVAL, "1: it is no UTF-8 text");
	for (t.p = whole;;) {
		space(&t);
		if (!*t.p)
			break;
		if (*t.p == '[' ? read_header(&t, root, &at) < 0 : read_pair(&t, 0, at) < 0)
			return -EINVAL;
		blanks(&t);
		if (*t.p && *t.p != '\n' && *t.p != '\r' && *t.p != '#')
			return bad(&t, "text behind the value");
	}
	*ret = TAKE_PTR(root);
	return 0;
}
