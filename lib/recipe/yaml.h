/* A YAML (or JSON) document as a small tree of our own, every node with its place. Built from
 * libfyaml's events, because its document builder is quadratic in the keys of a mapping and
 * expands aliases without a limit. Aliases and merge keys are expanded here, within
 * MO_RECIPE_NODES_MAX. Private to lib/recipe. */
#pragma once
#include "lib/recipe/errors.h"
#include "lib/recipe/tree.h"

#define YAML_DEPTH_MAX 32

/* The document's root, or NULL with at least one error. Duplicate keys are errors, but the tree
 * is returned (so errors->n must be checked in the end). An empty document is an empty
 * mapping. what: "recipe", "engine file", ... */
struct ynode *yaml_load(const char *text, size_t n, const char *what, struct recipe_errors *errors);
/* The same of a file of somebody else, where a key may be given twice: every pair is in the
 * mapping, in the order of the document. */
struct ynode *yaml_load_repeats(const char *text, size_t n, const char *what,
				struct recipe_errors *errors);
/* The same of a file that PyYAML reads: with the tags of YAML's own types, without tabs outside
 * quotes and without an anchor of a name that is there. */
struct ynode *yaml_load_python(const char *text, size_t n, const char *what,
			       struct recipe_errors *errors);
