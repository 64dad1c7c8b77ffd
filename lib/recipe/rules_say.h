/* What every rule between keys of a recipe works on and says alike. Private to lib/recipe.
 *
 * A rule has the recipe, its engine and the errors so far (struct rules), and is one function of a
 * file rules_*.c, called by rules_check() (rules.c). It says what is wrong at the place of the
 * value that a person would change, with what to do; a warning where the run may work all the same.
 *
 * What never happens: a rule asks what the engine is called. */
#pragma once
#include <stddef.h>
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/errors.h"
#include "lib/recipe/tree.h"

#define LL(x) ((long long)(x)) /* for %lld */

struct config_value;
struct rules {
	const struct ynode *root; /* for the places of values */
	struct recipe *recipe;    /* read and resolved; every single key is valid */
	const struct engine *engine;
	struct recipe_errors *errors;
	char ***warnings;
	size_t *n_warnings; /* NULL = not wanted */
};
bool rules_leads_out(const char *path); /* a relative path with a part ".." */
/* another rule has said already what is wrong there */
bool rules_said(const struct rules *k, const struct ynode *place);
/* the engine has a flag for the value */
bool rules_tells(const struct engine *e, const char *path);
/* engine.args_unchecked names the flag */
bool rules_unchecked(const struct rules *k, const char *flag);
/* A module of the user's own (`keys_more`) gives the engine other keys and types: engine.args
 * name it, with dashes or without, or its files do (merged; NULL: nobody read them). */
bool rules_extended(const struct rules *k, const struct config_value *merged);
/* Node of the first of the paths (NULL-terminated) that the document gives; the root when none
 * does. */
const struct ynode *rules_place(const struct rules *k, const char *const *paths);
#define PLACE(k, ...) rules_place((k), (const char *const[]){ __VA_ARGS__, NULL })
/* "LINE:COLUMN: text", or "--set a.b: text" for a value that was set. */
void rules_warn(struct rules *k, const struct ynode *where, const char *fmt, ...) _printf_(3, 4);
