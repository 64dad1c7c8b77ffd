/* A document as a small tree of our own, every node with its place (yaml.h makes it). Private to
 * lib/recipe. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"
#include "lib/base/util.h"

enum yaml_kind { YAML_SCALAR, YAML_MAP, YAML_LIST };
/* What !!str, !!int, .. say of a scalar. */
enum yaml_tag {
	YAML_TAG_NONE,
	YAML_TAG_STR,
	YAML_TAG_INT,
	YAML_TAG_FLOAT,
	YAML_TAG_BOOL,
	YAML_TAG_NULL
};
struct ynode;
struct yitem {
	struct ynode *key, *value;
}; /* key: a scalar; NULL in lists */
struct ynode {
	enum yaml_kind kind;
	bool plain;        /* scalar without quotes: it may be a number, a boolean or null */
	enum yaml_tag tag; /* only of yaml_load_python */
	char *text;        /* scalar, "" when the value is empty */
	struct yitem *items;
	size_t n;
	int64_t line, column; /* 1-based, columns in characters */
	/* the recipe does not say it: its engine's experiment does (left.h) */
	bool left;
	char *set; /* "--set a.b" of --set a.b=..., NULL = from the document */
};

struct ynode *ynode_free(struct ynode *n);
MO_DEFINE_CLEANUP(struct ynode, ynode_free)
/* A scalar node at the place of `like`. */
struct ynode *ynode_scalar(const char *text, bool plain, const struct ynode *like);
/* NULL if none or map is no mapping; the first one wins */
const struct ynode *ynode_get(const struct ynode *map, const char *key);
const struct ynode *ynode_find(const struct ynode *root, const char *path); /* "a.b.c" */
/* NULL, null or ~ ; an empty value is not null */
bool ynode_is_null(const struct ynode *n);
/* `key:` with nothing behind it */
bool ynode_is_empty(const struct ynode *n);
/* Block YAML that reads back as the same tree (appends). */
void ynode_emit(const struct ynode *n, struct mo_buf *b);
