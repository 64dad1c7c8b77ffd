/* engine.args of a recipe as flags with values, wherever they stand, and conditions on values. Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules.h"

struct arg {
	char *flag;                              /* as written, dashes and all, without "=value" */
	char *value;                             /* {path} replaced; NULL = a bare flag */
	bool off;                                /* `key: false` of a mapping */
	const struct ynode *at_flag, *at_value;  /* borrowed from the document; the same node in "--key=value". Of another origin: where its recipe value stands, NULL = nowhere */
	char *origin;                            /* NULL = engine.args; else the recipe value that brings the flag ("features.a2a"), "" = the engine's own command */
};
struct args { struct arg *items; size_t n; };
void args_read(const struct rules *k, struct args *ret);
/* All flags of a rank's command, in its order: the engine's own words, those that recipe values bring, engine.args. The last one of a flag is the one that counts. */
void args_command(const struct rules *k, struct args *ret);
void args_done(struct args *a);
/* Plain numbers of engine.args as the engine's own reader takes them for numbers, where it reads them like its experiment. */
void args_numbers(const struct ynode *root, const struct engine *e, struct recipe *r);
/* The last one of that flag, NULL = none. Dashes in front and '_' for '-' make no difference. */
const struct arg *args_find(const struct args *a, const char *flag);
/* Value of an arg as a condition sees it: "true" for a bare flag, "false" for one that is off. */
const char *arg_text(const struct arg *a);

/* Why the engine cannot be told the recipe's value of the path, whatever its other values are, by the engine's file and engine.args (caller frees); NULL: nothing is against it (rules_engine.c). */
char *rules_untold(const struct rules *k, const char *path);

bool flag_same(const char *a, const char *b, size_t n_b);   /* b has n_b characters; a may end in "=..." */
/* "a|b", ">N", "<N", "%N" (a multiple of it), "given" (asks for something; features.h), "!a|b" (a value, and none of these) against a value. NULL = unknown: nothing holds but "missing". true and
 * false in all spellings that engines take (True, 1, yes, on; no, off, 0); numbers also as 0x40, 6_4, 6.4e1. */
bool condition_holds(const char *want, const char *value);
/* It compares numbers, and the value is neither one nor a word for nothing. */
bool condition_unreadable(const char *want, const char *value);
