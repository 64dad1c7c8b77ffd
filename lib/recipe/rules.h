/* Rules between keys of a recipe. Private to lib/recipe. */
#pragma once
#include "lib/recipe/yaml.h"

struct config_value;
struct rules {
	const struct ynode *root;          /* for the places of values */
	struct recipe *recipe;             /* read and resolved; every single key is valid */
	const struct engine *engine;
	struct recipe_errors *errors;
	char ***warnings; size_t *n_warnings;   /* NULL = not wanted */
};
bool rules_leads_out(const char *path);   /* a relative path with a part ".." */
void rules_check(struct rules *k);
void rules_batch(struct rules *k); /* what an engine's files let a rank take at once (rules_batch.c) */
/* Rules that look at the engine: its flags against the recipe's values and args (rules_engine.c). */
void rules_engine(struct rules *k);
/* Features against engine, model and each other (rules_features.c); engine.args against the engine's list of flags (rules_keys.c). Called by rules_engine(). */
void rules_features(struct rules *k);
void rules_keys(struct rules *k);
void rules_shell(struct rules *k); /* what only a shell replaces (rules_shell.c) */
/* What the engine's own keys take, said by engine.args or its files (rules_types.c); keys of its files that
 * its version has not (rules_files.c). */
void rules_types(struct rules *k);
/* int, float, bool, or the words that the key takes, "a|b|c"; NULL: nobody says. Borrowed. */
const char *rules_type(const struct engine_checks *c, const char *key);
void rules_files(struct rules *k);
bool rules_said(const struct rules *k, const struct ynode *place);   /* another rule has said already what is wrong there */
/* Why the engine has none of it and what to do: the file's words for the value, else for the path; NULL: it says nothing. */
const char *rules_missing(const struct engine *e, const char *path, const char *value);
bool rules_tells(const struct engine *e, const char *path);   /* the engine has a flag for the value */
bool rules_in_words(const struct rules *k, const char *path);   /* "{path}" stands in engine.args or engine.argv */
bool rules_unchecked(const struct rules *k, const char *flag);   /* engine.args_unchecked names the flag */
/* A module of the user's own (`keys_more`) gives the engine other keys and types: engine.args name it, with
 * dashes or without, or its files do (merged; NULL: nobody read them). */
bool rules_extended(const struct rules *k, const struct config_value *merged);
/* An experiment's loader takes keys as they are written: with '-' for '_' a word is another key, which
 * nothing reads. The key that was meant, borrowed; NULL: the word is none of these. */
const char *rules_dropped(const struct engine *e, const char *flag);
/* Node of the first of the paths (NULL-terminated) that the document gives; the root when none does. */
const struct ynode *rules_place(const struct rules *k, const char *const *paths);
#define PLACE(k, ...) rules_place((k), (const char *const[]){ __VA_ARGS__, NULL })
/* "LINE:COLUMN: text", or "--set a.b: text" for a value that was set. */
void rules_warn(struct rules *k, const struct ynode *where, const char *fmt, ...) _printf_(3, 4);
