/* See planning.h: lib/plan, as the controller uses it. */
#include "cli/planning.h"

#include <errno.h>
#include <string.h>

#include "lib/plan/features.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/trial.h"

MO_DEFINE_DONE(gpu_type)

/* Of zero1, zero2 and zero3 those that the engine has a flag for; none: the planner's default.
 * Where it has one for zero1, that alone: the others are another way to save there (Megatron's
 * FSDP), which nobody gets without asking. */
static size_t shardings_of(const struct engine *e, const char *ret[static 3])
{
	static const char *const rows[] = { "parallelism.sharding=zero1",
					    "parallelism.sharding=zero2",
					    "parallelism.sharding=zero3" };
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		for (size_t k = 0; k < e->n_flags; k++) {
			if (!mo_streq(e->flags[k].key, rows[i]))
				continue;
			ret[n++] = strchr(rows[i], '=') + 1;
			if (i == 0)
				return n;
			break;
		}
	return n;
}

/* Stages of equally many layers are all that it knows: it has no row that a layout is written
 * to. */
static bool even_only(const struct engine *e)
{
	for (size_t i = 0; i < e->n_flags; i++)
		if (mo_starts_with(e->flags[i].key, "features.pipeline_layout"))
			return false;
	return e->even_layers;
}

static void trial_freep(struct recipe_trial **t)
{
	recipe_trial_free(*t);
}

/* plan_options.refuses: a recomputation that engine.args say stays theirs. */
struct trial {
	struct recipe_trial *recipe;
	bool stated;
};

static const char *refuses(void *arg, const struct plan *p)
{
	const struct trial *t = arg;
	const struct plan_parallelism *x = &p->parallelism;
	const struct recipe_sizes s = {
		x->tp, x->pp,          x->vpp,      x->ep,       x->etp,
		x->cp, p->batch.micro, x->sharding, p->schedule, t->stated ? NULL : p->recompute
	};
	return recipe_trial_refuses(t->recipe, &s);
}

int planning(const struct recipe_input *in, const char *gpu, const struct plan_options *o,
	     struct plan_doc *ret, struct mo_error *err)
{
	const struct recipe *r = &in->recipe;
	const struct engine *e = &in->engine;
	_cleanup_(trial_freep) struct recipe_trial *trial =
		recipe_trial_new(in->text.data, in->text.len, in->sets, in->n_sets, r);
	struct trial checks = { trial, !r->recompute && plan_recompute_given(r) };
	struct plan_options mine = *o;
	mine.refuses = refuses;
	mine.refuses_arg = &checks;
	const char *shardings[3];
	mine.n_shardings = shardings_of(e, shardings);
	mine.shardings = shardings;
	mine.even_layers = even_only(e);
	_cleanup_(gpu_type_done) struct gpu_type type;
	mo_desc_init(&gpu_type_desc, &type);
	const char *name = gpu ? gpu : r->gpu;
	if (!r->model && in->no_model)
		return mo_error_set(err, -EINVAL,
				    "plan: the engine's %s gives no model that can be planned: %s; "
				    "give `model:` a name of the catalogue or its sizes",
				    engine_files_word(e), in->no_model);
	if (!r->model && engine_has_values(e) && !in->experiment) {
		_cleanup_(mo_freep) char *path = recipe_entry_path(r);

		return mo_error_set(err, -EINVAL,
				    "plan: the model is the %s's, which was not read here%s%s%s; "
				    "plan where its files are, or give `model:` a name of the "
				    "catalogue or its sizes",
				    engine_files_word(e), path ? " (" : "", path ? path : "",
				    path ? ")" : "");
	}
	if (!name && !r->model)
		return mo_error_set(err, -EINVAL,
				    "plan: the recipe has no model, and a plan is made of one: "
				    "give a name of the catalogue or its sizes");
	if (!name)
		return mo_error_set(err, -EINVAL,
				    "cluster.gpu is missing: the plan depends on it; add it, or "
				    "give --gpu mi300x, mi325x, mi350x or mi355x");
	int k = gpu_type_load(name, &type, err);
	return k < 0 ? k : plan_make(r, &type, &mine, ret, err);
}

int planning_choose(struct recipe_input *in, struct plan_doc *ret, struct mo_error *err)
{
	const struct plan_options o = { .top = 1 };
	int r = planning(in, NULL, &o, ret, err);

	if (r < 0)
		return r;
	plan_apply(ret, &in->recipe);
	if (in->engine.even_layers)
		plan_apply_layout(&in->recipe);
	return 0;
}
