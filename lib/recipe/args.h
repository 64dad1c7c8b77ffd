/* engine.args of a recipe as flags with values, wherever they stand, and conditions on values.
 * Private to lib/recipe. */
#pragma once
#include "lib/recipe/rules_say.h"

struct arg {
	char *flag;  /* as written, dashes and all, without "=value" */
	char *value; /* {path} replaced; NULL = a bare flag */
	bool off;    /* `key: false` of a mapping */
	/* borrowed from the document; the same node in "--key=value". Of another origin: where
	 * its recipe value stands, NULL = nowhere */
	const struct ynode *at_flag, *at_value;
	/* NULL = engine.args; else the recipe value that brings the flag ("features.a2a"), "" =
	 * the engine's own command */
	char *origin;
};
struct args {
	struct arg *items;
	size_t n;
};
void args_read(const struct rules *k, struct args *ret);
/* All flags of a rank's command, in its order: the engine's own words, those that recipe values
 * bring, engine.args. The last one of a flag is the one that counts. */
void args_command(const struct rules *k, struct args *ret);
void args_done(struct args *a);
/* Plain numbers of engine.args as the engine's own reader takes them for numbers, where it reads
 * them like its experiment. */
void args_numbers(const struct ynode *root, const struct engine *e, struct recipe *r);
/* The last one of that flag, NULL = none. Dashes in front and '_' for '-' make no difference. */
const struct arg *args_find(const struct args *a, const char *flag);
/* Value of an arg as a condition sees it: "true" for a bare flag, "false" for one that is off. */
const char *arg_text(const struct arg *a);
