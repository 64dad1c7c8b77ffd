/* A recipe tried with other sizes, many times a second: what its rules say of a plan that nobody
 * wrote. */
#pragma once
#include "lib/model/recipe.h"
#include "lib/recipe/set.h"

/* Ranks of each dimension, chunks of a stage, sequences of a micro-batch. recompute NULL: as the
 * document says. */
struct recipe_sizes {
	int64_t tp, pp, vpp, ep, etp, cp, micro;
	const char *sharding, *schedule, *recompute;
};
/* r: what recipe_parse() made of text and sets. All arguments are borrowed until it returns; the
 * trial is the caller's. */
struct recipe_trial *recipe_trial_new(const char *text, size_t n, const struct recipe_set *sets,
				      size_t n_sets, const struct recipe *r);
/* Why the document would not pass its checks with these sizes in it, as if a person had written
 * them; borrowed from the trial. NULL: it passes. Answers are kept: it may be asked often. */
const char *recipe_trial_refuses(struct recipe_trial *t, const struct recipe_sizes *s);
void recipe_trial_free(struct recipe_trial *t);
