/* A YAML (or JSON) document as a small tree of our own, every node with its place. Built from libfyaml's events, because its document builder is quadratic in the
 * keys of a mapping and expands aliases without a limit. Aliases and merge keys are expanded here, within MO_RECIPE_NODES_MAX. Private to lib/recipe. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/recipe/recipe_file.h"

#define YAML_DEPTH_MAX 32

enum yaml_kind { YAML_SCALAR, YAML_MAP, YAML_LIST };
/* What !!str, !!int, .. say of a scalar. */
enum yaml_tag { YAML_TAG_NONE, YAML_TAG_STR, YAML_TAG_INT, YAML_TAG_FLOAT, YAML_TAG_BOOL, YAML_TAG_NULL };
struct ynode;
struct yitem { struct ynode *key, *value; };   /* key: a scalar; NULL in lists */
struct ynode {
	enum yaml_kind kind;
	bool plain;              /* scalar without quotes: it may be a number, a boolean or null */
	enum yaml_tag tag;       /* only of yaml_load_python */
	char *text;              /* scalar, "" when the value is empty */
	struct yitem *items; size_t n;
	int64_t line, column;    /* 1-based, columns in characters */
	bool left;               /* the recipe does not say it: its engine's experiment does (left.h) */
	char *set;               /* "--set a.b" of --set a.b=..., NULL = from the document */
};

struct ynode *ynode_free(struct ynode *n);
MO_DEFINE_CLEANUP(struct ynode, ynode_free)
/* The document's root, or NULL with at least one error. Duplicate keys are errors, but the tree is returned (so errors->n must be looked at in the end). An empty
 * document is an empty mapping. what: "recipe", "engine file", ... */
struct ynode *yaml_load(const char *text, size_t n, const char *what, struct recipe_errors *errors);
/* The same of a file of somebody else, where a key may be given twice: every pair is in the mapping, in the order of the document. */
struct ynode *yaml_load_repeats(const char *text, size_t n, const char *what, struct recipe_errors *errors);
/* The same of a file that PyYAML reads: with the tags of YAML's own types, without tabs outside quotes and without an anchor of a name that is there. */
struct ynode *yaml_load_python(const char *text, size_t n, const char *what, struct recipe_errors *errors);
/* A scalar node at the place of `like`. */
struct ynode *ynode_scalar(const char *text, bool plain, const struct ynode *like);
const struct ynode *ynode_get(const struct ynode *map, const char *key);      /* NULL if none or map is no mapping; the first one wins */
const struct ynode *ynode_find(const struct ynode *root, const char *path);   /* "a.b.c" */
bool ynode_is_null(const struct ynode *n);                                    /* NULL, null or ~ ; an empty value is not null */
bool ynode_is_empty(const struct ynode *n);                                   /* `key:` with nothing behind it */
/* Block YAML that reads back as the same tree (appends). */
void ynode_emit(const struct ynode *n, struct mo_buf *b);

/* Errors are collected in any order and sorted by recipe_errors_finish(), which keeps the first 20. */
void errors_at(struct recipe_errors *e, const struct ynode *where, const char *hint, const char *fmt, ...) _printf_(4, 5);
void errors_place(struct recipe_errors *e, int64_t line, int64_t column, const char *hint, const char *fmt, ...) _printf_(5, 6);
/* 0 when there is none, else -EINVAL with the items in document order. */
int recipe_errors_finish(struct recipe_errors *e);
