/* Looking at and writing back the tree of yaml.h, and the collection of errors with their places. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/recipe/yaml.h"

#define ERRORS_SHOWN 20
#define ERRORS_COLLECTED 1024

struct ynode *ynode_scalar(const char *text, bool plain, const struct ynode *like)
{
	struct ynode *n = mo_alloc(sizeof(*n));

	n->kind = YAML_SCALAR;
	n->plain = plain;
	n->text = mo_strdup(text);
	if (like) {
		n->line = like->line;
		n->column = like->column;
		n->set = mo_strdup(like->set);
	}
	return n;
}

const struct ynode *ynode_get(const struct ynode *map, const char *key)
{
	if (!map || map->kind != YAML_MAP)
		return NULL;
	for (size_t i = 0; i < map->n; i++)
		if (mo_streq(map->items[i].key->text, key))
			return map->items[i].value;
	return NULL;
}

const struct ynode *ynode_find(const struct ynode *root, const char *path)
{
	const struct ynode *n = root;

	while (n && *path) {
		size_t len = strcspn(path, ".");
		_cleanup_(mo_freep) char *key = mo_strndup(path, len);

		n = ynode_get(n, key);
		path += len + (path[len] == '.');
	}
	return n;
}

bool ynode_is_null(const struct ynode *n)
{
	return !n || (n->kind == YAML_SCALAR && n->plain && (mo_streq(n->text, "null") || mo_streq(n->text, "~") || mo_streq(n->text, "Null") || mo_streq(n->text, "NULL")));
}

bool ynode_is_empty(const struct ynode *n)
{
	return n && n->kind == YAML_SCALAR && n->plain && !*n->text;
}

static void emit_scalar(const struct ynode *n, struct mo_buf *b)
{
	if (n->plain && !strchr(n->text, '\n')) {
		mo_buf_str(b, n->text);
		return;
	}
	mo_buf_str(b, "\"");
	for (const unsigned char *s = (const unsigned char *)n->text; *s; s++) {
		if (*s == '"' || *s == '\\')
			mo_buf_printf(b, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			mo_buf_printf(b, "\\x%02x", *s);
		else
			mo_buf_add(b, s, 1);
	}
	mo_buf_str(b, "\"");
}

static void emit(const struct ynode *n, int indent, struct mo_buf *b)
{
	if (n->kind == YAML_SCALAR) {
		mo_buf_str(b, " ");
		emit_scalar(n, b);
		mo_buf_str(b, "\n");
		return;
	}
	if (!n->n) {
		mo_buf_str(b, n->kind == YAML_MAP ? " {}\n" : " []\n");
		return;
	}
	if (indent >= 0)
		mo_buf_str(b, "\n");
	for (size_t i = 0; i < n->n; i++) {
		mo_buf_printf(b, "%*s", 2 * (indent + 1), "");
		if (n->kind == YAML_MAP) {
			emit_scalar(n->items[i].key, b);
			mo_buf_str(b, ":");
		} else
			mo_buf_str(b, "-");
		emit(n->items[i].value, indent + 1, b);
	}
}

void ynode_emit(const struct ynode *n, struct mo_buf *b)
{
	emit(n, -1, b);
}

static struct mo_error *errors_add(struct recipe_errors *e, int64_t line, int64_t column, const char *hint)
{
	struct mo_error *err = MO_GROW(e->items, e->n);

	err->line = line;
	err->column = column;
	err->hint = mo_strdup(hint);
	return err;
}

void errors_place(struct recipe_errors *e, int64_t line, int64_t column, const char *hint, const char *fmt, ...)
{
	va_list ap;

	if (e->n >= ERRORS_COLLECTED)
		return;
	va_start(ap, fmt);
	errors_add(e, line, column, hint)->text = mo_vprintf(fmt, ap);
	va_end(ap);
}

void errors_at(struct recipe_errors *e, const struct ynode *where, const char *hint, const char *fmt, ...)
{
	va_list ap;

	if (e->n >= ERRORS_COLLECTED)
		return;
	va_start(ap, fmt);
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	va_end(ap);
	if (where->set)
		errors_add(e, 0, 0, hint)->text = mo_printf("%s: %s", where->set, text);
	else
		errors_add(e, where->line, where->column, hint)->text = TAKE_PTR(text);
}

static bool after(const struct mo_error *a, const struct mo_error *b)
{
	return a->line != b->line ? a->line > b->line : a->column > b->column;
}

int recipe_errors_finish(struct recipe_errors *e)
{
	for (size_t i = 1; i < e->n; i++)         /* insertion: stable, and nearly sorted already */
		for (size_t k = i; k > 0 && after(&e->items[k - 1], &e->items[k]); k--) {
			struct mo_error t = e->items[k];

			e->items[k] = e->items[k - 1];
			e->items[k - 1] = t;
		}
	while (e->n > ERRORS_SHOWN)
		mo_error_done(&e->items[--e->n]);
	return e->n ? -EINVAL : 0;
}

void recipe_errors_done(struct recipe_errors *e)
{
	for (size_t i = 0; i < e->n; i++)
		mo_error_done(&e->items[i]);
	free(e->items);
	*e = (struct recipe_errors){ 0 };
}
