/* Calibration by measured runs (see anchor.h). The geometric mean of the ratios of the best matching runs, weighed against the plan itself.
 * All parts of the step are scaled alike: a single number per run cannot say more. */
#include "lib/plan/anchor.h"

#include <math.h>

#include "lib/plan/constants.h"

void plan_anchor_done(struct plan_anchor *a)
{
	for (size_t i = 0; i < a->n_runs; i++) {
		free(a->runs[i].software);
		free(a->runs[i].gpu);
		free(a->runs[i].precision);
		free(a->runs[i].model);
	}
	free(a->runs);
	*a = (struct plan_anchor){ 0 };
}

static double ratio(double measured, double planned)
{
	return measured != MO_NONE_F && isfinite(measured) && measured > 0 && isfinite(planned) && planned > 0 ? measured / planned : MO_NONE_F;
}

void plan_anchor_add(struct plan_anchor *a, const struct recipe *r, const struct plan_doc *doc, double step_time_s, double memory_gb)
{
	struct plan_anchor_run *run = MO_GROW(a->runs, a->n_runs);
	run->software = mo_strdup(r->engine.kind);
	run->gpu = mo_strdup(doc->hardware.gpu);
	run->precision = mo_strdup(r->precision);
	run->model = mo_strdup(r->model ? r->model->name : NULL);
	run->step_ratio = doc->n_plans ? ratio(step_time_s, doc->plans[0].step_time_s.total) : MO_NONE_F;
	run->memory_ratio = doc->n_plans ? ratio(memory_gb, doc->plans[0].memory_gb.total) : MO_NONE_F;
}

enum match { MATCH_STACK, MATCH_MODEL, MATCH_GPU, MATCH_NONE };

static enum match match_of(const struct plan_anchor_run *run, const struct recipe *r, const char *gpu)
{
	if (!mo_streq(run->gpu, gpu) || !mo_streq(run->precision, r->precision))
		return MATCH_NONE;
	if (!mo_streq(run->model, r->model ? r->model->name : NULL))
		return MATCH_GPU;
	return mo_streq(run->software, r->engine.kind) ? MATCH_STACK : MATCH_MODEL;
}

/* Logarithm of the factor that the best matching runs ask for, and how many they are; those that match less count only when none matches more. */
static double asked(const struct plan_anchor *a, const struct recipe *r, const char *gpu, bool of_memory, enum match *ret_match, size_t *ret_n)
{
	double sum = 0;

	*ret_match = MATCH_NONE;
	*ret_n = 0;
	for (size_t i = 0; i < a->n_runs; i++) {
		const struct plan_anchor_run *run = &a->runs[i];
		double v = of_memory ? run->memory_ratio : run->step_ratio;
		enum match m = match_of(run, r, gpu);

		if (v == MO_NONE_F || m == MATCH_NONE || m > *ret_match)
			continue;
		if (m < *ret_match) {
			*ret_match = m;
			*ret_n = 0;
			sum = 0;
		}
		sum += log(v);
		(*ret_n)++;
	}
	return *ret_n ? sum / (double)*ret_n : 0;
}

/* Runs of a stack scatter around each other, stacks around the plan: the mean of n runs is believed by the share of the second in the sum. */
static double belief(const struct recipe *r, enum match match, size_t n)
{
	double stack = r->model && r->model->moe ? plan_constants.spread_moe : plan_constants.spread_dense, row = plan_constants.spread_row;

	if (match != MATCH_STACK)                 /* another model or other software scatters as stacks do */
		row = stack;
	return (double)n * stack * stack / ((double)n * stack * stack + row * row);
}

static void scale_time(struct plan *p, double k)
{
	double *parts[] = { &p->step_time_s.total, &p->step_time_s.compute, &p->step_time_s.a2a, &p->step_time_s.pp, &p->step_time_s.dp, &p->step_time_s.cp, &p->step_time_s.tp, &p->step_time_s.optimizer,
			    &p->step_time_s.launch };
	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		*parts[i] *= k;
	double *rates[] = { &p->tokens_per_s_per_gpu, &p->tflops_per_gpu, &p->mfu };
	for (size_t i = 0; i < ELEMENTSOF(rates); i++)
		if (*rates[i] != MO_NONE_F)
			*rates[i] /= k;
}

/* What is computed from formulas (weights, gradients, optimizer) stays; the difference is activations and reserve, which are estimates. Never below what is certain. */
static void scale_memory(struct plan *p, double k)
{
	struct plan_memory *m = &p->memory_gb;
	double sure = m->params + m->grads + m->optimizer, rest = m->total - sure, wanted = MO_MAX(m->total * k, sure);
	double f = rest > 0 ? (wanted - sure) / rest : 1;
	m->activations *= f;
	m->comm *= f;
	m->reserve *= f;
	m->total = wanted;
	p->fits = m->total <= m->capacity;
}

bool plan_anchor_apply(const struct plan_anchor *a, const struct recipe *r, const char *gpu, struct plan_doc *doc)
{
	static const char *const whose[] = { "this stack", "this model with other software", "other models" };
	enum match match, match_memory;
	size_t n, n_memory;
	double step = asked(a, r, gpu, false, &match, &n), memory = asked(a, r, gpu, true, &match_memory, &n_memory);

	if (!n && !n_memory)
		return false;
	step = exp(step * belief(r, match, n));
	memory = exp(memory);
	for (size_t i = 0; i < doc->n_plans; i++) {
		struct plan *p = &doc->plans[i];

		if (n) {
			scale_time(p, step);
			if (match == MATCH_STACK)
				p->error_pct = plan_constants.error_anchored_pct;
		}
		if (n_memory)
			scale_memory(p, memory);
		_cleanup_(mo_freep) char *note = mo_printf("calibrated by %zu measured runs of %s on %s: step x %.3f, memory x %.3f", MO_MAX(n, n_memory), whose[n ? match : match_memory], gpu, step, memory);
		mo_strs_add(&p->notes, &p->n_notes, note);
	}
	for (size_t i = 0; i < doc->n_scaling && n; i++)
		if (doc->scaling[i].step_time_s != MO_NONE_F) {
			doc->scaling[i].step_time_s *= step;
			doc->scaling[i].mfu /= step;
			if (doc->scaling[i].days != MO_NONE_F)
				doc->scaling[i].days *= step;
		}
	return true;
}
