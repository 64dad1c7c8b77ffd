/* An engine that takes so many sequences at once on each data-parallel rank
 * (derived.pass_batch): where its own files say how many, a step must be a multiple of what all
 * ranks take, and a pipeline cuts what one takes into whole micro-batches. Without a pipeline
 * that is batch.micro, and rules.c says it. */
#include "lib/recipe/rules_batch.h"

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/recipe/experiment_record.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/keys.h"

/* What one rank takes, and by which key; NULL: the recipe tells it, or nobody knows. Caller
 * frees. */
static char *taken_by(const struct rules *k, int64_t *ret)
{
	_cleanup_(mo_freep) char *stated = recipe_value(k->recipe, "derived.pass_batch");
	_cleanup_(experiment_said_done) struct experiment_said v = { 0 };
	struct experiment x;

	if (stated || !rules_tells(k->engine, "derived.pass_batch") ||
	    experiment_of_tree(k->root, &x, NULL) < 0)
		return NULL;
	bool known = experiment_pass_batch(k->engine, &x, &v) &&
		     mo_parse_i64(v.text, 1, MO_RANKS_MAX, ret) == 0;

	experiment_done(&x);
	return known ? TAKE_PTR(v.key) : NULL;
}

void rules_batch(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct recipe_parallelism *p = &r->parallelism;
	const struct ynode *place = PLACE(k, "batch.global", "batch.global_tokens", "batch");
	int64_t each, micro = r->micro;

	if (r->unread || p->automatic || p->pp < 2 || p->dp < 1 || r->global_batch == MO_NONE ||
	    rules_said(k, place))
		return;
	_cleanup_(mo_freep) char *key = taken_by(k, &each);

	if (key && micro > 0 && each % micro)
		errors_at(k->errors, PLACE(k, "batch.micro", "batch"),
			  "give batch.micro and batch.global, and it is told what fits",
			  "%s: %lld does not divide by the micro-batch of the pipeline, %lld", key,
			  LL(each), LL(micro));
	else if (key && r->global_batch % mo_times(each, p->dp))
		errors_at(k->errors, place, "give batch.micro, and it is told what fits",
			  "batch.global: %lld does not divide by %s %lld x dp %lld",
			  LL(r->global_batch), key, LL(each), LL(p->dp));
}
