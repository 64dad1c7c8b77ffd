/* The tree of a document: made, read, written back (tree.h). */
#include "lib/recipe/tree.h"

#include <stdio.h>
#include <string.h>

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
	return !n || (n->kind == YAML_SCALAR && n->plain &&
		      (mo_streq(n->text, "null") || mo_streq(n->text, "~") ||
		       mo_streq(n->text, "Null") || mo_streq(n->text, "NULL")));
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

struct ynode *ynode_free(struct ynode *n)
{
	if (!n)
		return NULL;
	for (size_t i = 0; i < n->n; i++) {
		ynode_free(n->items[i].key);
		ynode_free(n->items[i].value);
	}
	free(n->items);
	free(n->text);
	free(n->set);
	free(n);
	return NULL;
}
