/* What a new job is refused for, or warned of, before anything is recorded: a plan that does not
 * fit, a resume that nothing is for. */
#include "daemon/admit.h"

#include <string.h>

#include "daemon/anchors.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/state/forecast.h"
#include "daemon/forked.h"
#include "daemon/helper.h"
#include "daemon/spec.h"
#include "daemon/too_large.h"
#include "lib/plan/admit.h"
#include "lib/plan/features.h"
#include "lib/plan/plan.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/reliability.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/resume.h"
#include "lib/recipe/trial.h"
#include "lib/wire/encode.h"

#define RESUME_NEVER -2 /* checkpoint.resume: never */

MO_DEFINE_DONE(plan_doc)
MO_DEFINE_DONE(gpu_type)

/* What is advised instead of a plan that does not fit must pass the recipe's own checks. */
struct advice {
	const struct submit *spec;
	struct recipe_trial *trial;
};

static void advice_done(struct advice *a)
{
	recipe_trial_free(a->trial);
}

static const char *refuses(void *arg, const struct plan *p)
{
	struct advice *a = arg;
	const struct recipe *r = &a->spec->recipe;
	const struct plan_parallelism *x = &p->parallelism;
	const struct recipe_sizes sizes = {
		x->tp,          x->pp,
		x->vpp,         x->ep,
		x->etp,         x->cp,
		p->batch.micro, x->sharding,
		p->schedule,    !r->recompute && plan_recompute_given(r) ? NULL : p->recompute
	};

	if (!a->trial)
		a->trial = recipe_trial_new(a->spec->recipe_text, strlen(a->spec->recipe_text),
					    NULL, 0, r);
	return recipe_trial_refuses(a->trial, &sizes);
}

bool admit_plan_given(const struct state *s, const struct submit *spec, bool notes,
		      struct plan_doc *ret)
{
	const struct recipe *r = &spec->recipe;
	_cleanup_(gpu_type_done) struct gpu_type gpu;
	_cleanup_(advice_done) struct advice advice = { spec, NULL };
	const struct plan_options one = {
		.top = 1, .figures = !notes, .refuses = refuses, .refuses_arg = &advice
	};

	mo_desc_init(&gpu_type_desc, &gpu);
	if (!r->model || !r->gpu || r->parallelism.automatic ||
	    gpu_type_load(r->gpu, &gpu, NULL) < 0 || plan_make(r, &gpu, &one, ret, NULL) < 0)
		return false;
	anchors_apply(s, r, &gpu, ret);
	return true;
}

char *admit_plan(const struct state *s, const struct submit *spec)
{
	_cleanup_(plan_doc_done) struct plan_doc doc;
	struct mo_buf b = { 0 };

	mo_desc_init(&plan_doc_desc, &doc);
	if (!admit_plan_given(s, spec, true, &doc))
		return NULL;
	wire_encode(&plan_doc_desc, &doc, &b);
	return mo_buf_take(&b);
}

/* The job that saved to the same directory (of the nodes) last. */
static const struct job *saved_there(const struct state *s, const char *dir)
{
	const struct job *last = NULL;

	for (size_t i = 0; dir && i < s->n_jobs; i++)
		if (s->jobs[i]->n_checkpoints > 0 && mo_streq(s->jobs[i]->saves.dir, dir) &&
		    (!last || s->jobs[i]->id > last->id))
			last = s->jobs[i];
	return last;
}

void admit_warn_resume(const struct state *s, struct submit *spec)
{
	const struct recipe *r = &spec->recipe;
	_cleanup_(mo_freep) char *dir = recipe_save_dir(r);
	const struct job *j = r->checkpoint.resume == RESUME_NEVER ? NULL : saved_there(s, dir);
	_cleanup_(mo_freep) char *changed = j ? recipe_changed(&j->spec.recipe, r, &spec->engine)
					      : NULL,
				 *text = j ? checkpoint_no_resume(j, r) : NULL;

	if (text)
		; /* the format of what lies there says more than the engine does */
	else if (j && !mo_streq(j->spec.recipe.engine.kind, r->engine.kind))
		text = mo_printf("checkpoint.dir: j-%lld saved there with engine %s, and %s cannot "
				 "load that: take another directory",
				 (long long)j->id, j->spec.recipe.engine.kind, r->engine.kind);
	else if (changed)
		text = mo_printf("checkpoint.dir: j-%lld saved there, and engine %s does not "
				 "resume with %s: take another directory, or checkpoint.resume: "
				 "never",
				 (long long)j->id, r->engine.kind, changed);
	if (text)
		mo_strs_add(&spec->warnings, &spec->n_warnings, text);
}

void admit_warn_checkpoints(const struct state *s, struct submit *spec)
{
	_cleanup_(mo_freep) char *room = forecast_room(s, spec), *save = forecast_save(s, spec);

	if (room)
		mo_strs_add(&spec->warnings, &spec->n_warnings, room);
	if (save)
		mo_strs_add(&spec->warnings, &spec->n_warnings, save);
}

/* Of the nodes that are known, none without GPUs: MO_NONE. */
static void node_sizes(const struct state *s, int64_t *ret_least, int64_t *ret_most)
{
	*ret_least = *ret_most = MO_NONE;
	for (size_t i = 0; i < s->n_nodes; i++) {
		int64_t n = (int64_t)s->nodes[i]->info.n_gpus;

		if (n == 0)
			continue;
		*ret_least = *ret_least == MO_NONE ? n : MO_MIN(*ret_least, n);
		*ret_most = MO_MAX(*ret_most, n);
	}
}

void admit_warn_spares(const struct state *s, struct submit *spec)
{
	int64_t spares = spec->recipe.spares, gpus = spec->recipe.gpus, least, most;
	_cleanup_(mo_freep) char *size = NULL, *text = NULL;

	if (spares <= 0)
		return;
	node_sizes(s, &least, &most);
	if (most == MO_NONE)
		return;
	size = least == most ? mo_printf("%lld GPUs, %.3g %%", (long long)(spares * most),
					 plan_spares_share(spares * most, gpus) * 100)
			     : mo_printf("%lld to %lld GPUs, %.3g to %.3g %%",
					 (long long)(spares * least), (long long)(spares * most),
					 plan_spares_share(spares * least, gpus) * 100,
					 plan_spares_share(spares * most, gpus) * 100);
	text = mo_printf("cluster.spares: %lld whole node%s kept for it and given to nobody else: "
			 "%s of the GPU-seconds that it takes ('spare' in its report)",
			 (long long)spares, spares == 1 ? " is" : "s are", size);
	mo_strs_add(&spec->warnings, &spec->n_warnings, text);
}

void admit_warn_too_large(const struct state *s, struct submit *spec)
{
	_cleanup_(too_large_done) struct too_large t;

	if (!too_large(s, spec, &t))
		return;
	_cleanup_(mo_freep) char *text =
		mo_printf("cluster.gpus: %s, so the job waits until more join%s%s", t.text,
			  t.next ? "; " : "", t.next ? t.next : "");

	mo_strs_add(&spec->warnings, &spec->n_warnings, text);
}

void admit_promise(const struct state *s, struct submit *spec)
{
	_cleanup_(plan_doc_done) struct plan_doc doc;

	mo_desc_init(&plan_doc_desc, &doc);
	mo_desc_free(&promise_desc, spec->promise);
	spec->promise = admit_plan_given(s, spec, false, &doc) ? promise_of(&doc) : NULL;
}

bool spec_admit(const struct manager *m, struct submit *spec, char **ret_why)
{
	_cleanup_(plan_doc_done) struct plan_doc doc;
	_cleanup_(mo_freep) char *text = NULL;

	mo_desc_init(&plan_doc_desc, &doc);
	bool planned = admit_plan_given(manager_state(m), spec, false, &doc);
	/* only what does not fit is told what would */
	if (planned && !doc.plans[0].fits)
		planned = admit_plan_given(manager_state(m), spec, true, &doc);
	enum plan_verdict verdict = planned ? plan_admit(&spec->recipe, &doc, &text) : PLAN_ADMIT;
	if (verdict == PLAN_REFUSE)
		*ret_why = mo_strdup(text);
	if (verdict == PLAN_WARN)
		mo_strs_add(&spec->warnings, &spec->n_warnings, text);
	mo_desc_free(&promise_desc, spec->promise);
	spec->promise = promise_of(&doc);
	return verdict != PLAN_REFUSE;
}
