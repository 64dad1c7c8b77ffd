/* What a resolved experiment says about values of a recipe, by the rows that the engine file has
 * for it. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/experiment.h"

/* The value as a word of a recipe in JSON, the key of the experiment that says it, and its value
 * there (NULL: the engine's own default). */
struct experiment_said {
	char *text, *key;
	const struct config_value *from;
	int64_t rest_of; /* a node's GPUs divided by so many; 0: the text is the value */
	bool per_dp;     /* so many for each data-parallel rank */
	bool by_recipe;  /* the recipe says so many, whatever the experiment does */
};
void experiment_said_done(struct experiment_said *s);
/* What the first row of that path says that says anything. A value of a wrong type is carried
 * on: the recipe's own checks refuse it with its place. False: no row says anything. */
bool experiment_value(const struct engine *e, const struct experiment *x, const char *path,
		      struct experiment_said *ret);
/* How many sequences a data-parallel rank takes at once by the engine's files, where its file
 * says so ("per_dp(KEYS)" of batch.global). */
bool experiment_pass_batch(const struct engine *e, const struct experiment *x,
			   struct experiment_said *ret);
/* "A=true B C!=x D>1": A is true, B is there and not null, C is anything but x, D a number above
 * 1. */
bool experiment_holds(const struct experiment *x, const char *conditions);
/* Why no model can be made of it that plans could use (caller frees); NULL: one can. */
char *experiment_no_model(const struct engine *e, const struct experiment *x);
