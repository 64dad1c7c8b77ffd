/* A recipe's `model` beside an experiment of another one (experiment.h): the engine trains its
 * file's, and plans count with the recipe's. */
#include "cli/experiment_model.h"

#include <stdio.h>
#include <string.h>

#include "cli/visible.h"
#include "lib/base/parse.h"
#include "lib/recipe/experiment_values.h"

void experiment_other_model(const struct recipe_input *in, const struct experiment *x)
{
	const struct recipe_model *m = in->recipe.model;
	const struct recipe_moe *moe = m ? m->moe : NULL;
	const struct {
		const char *path;
		int64_t n;
	} sizes[] = {
		{ "model.layers", m ? m->layers : MO_NONE },
		{ "model.hidden", m ? m->hidden : MO_NONE },
		{ "model.heads", m ? m->heads : MO_NONE },
		{ "model.moe.experts", moe ? moe->experts : MO_NONE },
		{ "model.moe.topk", moe ? moe->topk : MO_NONE },
	};

	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		_cleanup_(experiment_said_done) struct experiment_said said = { 0 };
		int64_t n;

		if (sizes[i].n == MO_NONE ||
		    !experiment_value(&in->engine, x, sizes[i].path, &said) || !said.from ||
		    mo_parse_i64(said.text, 0, INT64_MAX, &n) < 0 || n == sizes[i].n)
			continue;
		_cleanup_(mo_freep) char *place = experiment_place(x, said.from->place);
		_cleanup_(mo_freep) char *text =
			mo_printf("%s: warning: model: %s has %s %lld, and %s says %s %lld: the "
				  "engine trains what its file says, and plans count with this "
				  "one; leave `model` out, or give that one",
				  in->file, m->name ? m->name : "it",
				  sizes[i].path + strlen("model."), (long long)sizes[i].n, place,
				  said.key, (long long)n);
		_cleanup_(mo_freep) char *shown = visible(text);

		fprintf(stderr, "%s\n", shown);
		return;
	}
}
