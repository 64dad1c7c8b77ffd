/* Calibration by measured runs (see anchor.h). All parts of the step are scaled alike: factors
 * of their own for exchanges and launches have been tried and predict no better. */
#include "lib/plan/anchor.h"

#include <math.h>

#include "lib/base/assert.h"
#include "lib/plan/constants.h"

#define RUNS_MOST 16 /* the closest ones; more add nothing */
/* ln, of measured memory around plans: stacks and configurations */
#define SPREAD_MEMORY 0.10
#define SPREAD_MEMORY_RUN 0.01 /* of runs that are alike */
/* times what is planned, or that many times less: something else ran */
#define FAR 4.0

static void run_done(struct plan_anchor_run *r)
{
	free(r->software);
	free(r->gpu);
	free(r->precision);
	free(r->model);
}

void plan_anchor_done(struct plan_anchor *a)
{
	for (size_t i = 0; i < a->n_runs; i++)
		run_done(&a->runs[i]);
	free(a->runs);
	*a = (struct plan_anchor){ 0 };
}

/* *far: there is a measurement, and it is too far off to calibrate anything. */
static double ratio(double measured, double planned, bool *far)
{
	if (measured == MO_NONE_F || !isfinite(measured) || measured <= 0 || !isfinite(planned) ||
	    planned <= 0)
		return MO_NONE_F;
	double r = measured / planned;

	*far = *far || !(r >= 1 / FAR && r <= FAR);
	return r >= 1 / FAR && r <= FAR ? r : MO_NONE_F;
}

static struct plan_anchor_run run_of(const struct recipe *r, const char *gpu, const struct plan *p)
{
	struct plan_anchor_run run = { .software = mo_strdup(r->engine.kind),
				       .gpu = mo_strdup(gpu),
				       .precision = mo_strdup(r->precision),
				       .model = recipe_model_key(r->model),
				       .moe = r->model && r->model->moe,
				       .step_ratio = MO_NONE_F,
				       .memory_ratio = MO_NONE_F };

	if (p) {
		const struct plan_parallelism *x = &p->parallelism;
		double gpus = (double)x->tp * (double)x->pp * (double)x->cp * (double)x->dp,
		       tokens = (double)p->batch.seq * (double)p->batch.global;
		/* GPUs and tokens of a GPU count half: they change what is exchanged, not what
		 * is computed */
		double sizes[ANCHOR_AXES] = { (double)x->tp,
					      (double)x->pp,
					      (double)x->cp,
					      (double)x->ep,
					      (double)p->batch.micro * (double)p->batch.seq,
					      (double)p->batch.seq,
					      sqrt(gpus),
					      sqrt(tokens / MO_MAX(gpus, 1)),
					      mo_streq(p->recompute, "full") ? 4 : 1 };

		for (size_t i = 0; i < ANCHOR_AXES; i++)
			run.at[i] = log2(MO_MAX(sizes[i], 1));
	}
	return run;
}

void plan_anchor_add(struct plan_anchor *a, const struct recipe *r, const struct plan_doc *doc,
		     double step_time_s, double memory_gb)
{
	const struct plan *p = doc->n_plans ? &doc->plans[0] : NULL;
	struct plan_anchor_run *run = MO_GROW(a->runs, a->n_runs);

	*run = run_of(r, doc->hardware.gpu, p);
	if (p) {
		bool far = false;

		run->step_ratio = ratio(step_time_s, p->step_time_s.total, &far);
		run->memory_ratio = ratio(memory_gb, p->memory_gb.total, &far);
		a->n_far += far;
	}
}

static bool same_stack(const struct plan_anchor_run *a, const struct plan_anchor_run *b)
{
	return mo_streq(a->model, b->model) && mo_streq(a->software, b->software);
}

/* What the errors of two runs' plans have in common, chance aside. */
static double shared(const struct plan_anchor_run *a, const struct plan_anchor_run *b, bool memory)
{
	const struct plan_constants *k = &plan_constants;
	double stack = (a->moe ? k->spread_moe : k->spread_dense) *
		       (b->moe ? k->spread_moe : k->spread_dense),
	       config = k->spread_config * k->spread_config, far = 0;
	bool model = mo_streq(a->model, b->model);

	if (memory)
		stack = config = SPREAD_MEMORY * SPREAD_MEMORY;
	for (size_t i = 0; i < ANCHOR_AXES; i++)
		far += (a->at[i] - b->at[i]) * (a->at[i] - b->at[i]);
	config *= exp(-far / (2 * k->spread_reach * k->spread_reach));
	if (same_stack(a, b))
		return stack + config;
	if (model)
		return k->shared_model * (stack + config);
	return mo_streq(a->software, b->software) ? k->shared_software * stack : 0;
}

/* common: with what is asked for */
struct known {
	const struct plan_anchor_run *run;
	double common;
};

/* The runs that say most, the best first. */
static size_t closest(const struct plan_anchor *a, const struct plan_anchor_run *of, bool memory,
		      struct known ret[static RUNS_MOST])
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_runs; i++) {
		const struct plan_anchor_run *run = &a->runs[i];
		double common = shared(of, run, memory);

		if (run == of || (memory ? run->memory_ratio : run->step_ratio) == MO_NONE_F ||
		    !mo_streq(run->gpu, of->gpu) || !mo_streq(run->precision, of->precision) ||
		    common <= 0)
			continue;
		size_t at = n < RUNS_MOST ? n++ : RUNS_MOST;

		while (at > 0 && ret[at - 1].common < common) {
			if (at < RUNS_MOST)
				ret[at] = ret[at - 1];
			at--;
		}
		if (at < RUNS_MOST)
			ret[at] = (struct known){ run, common };
	}
	return n;
}

/* Solves m x = b in place, m symmetric and positive definite: Cholesky. */
static void solve(size_t n, double m[RUNS_MOST][RUNS_MOST], double b[RUNS_MOST])
{
	mo_assert(n <= RUNS_MOST);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++) {
			double sum = m[i][j];

			for (size_t k = 0; k < j; k++)
				sum -= m[i][k] * m[j][k];
			m[i][j] = i == j ? sqrt(sum) : sum / m[j][j];
		}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			b[i] -= m[i][k] * b[k];
		b[i] /= m[i][i];
	}
	for (size_t i = n; i-- > 0;) {
		for (size_t k = i + 1; k < n; k++)
			b[i] -= m[k][i] * b[k];
		b[i] /= m[i][i];
	}
}

bool plan_anchor_expect(const struct plan_anchor *a, const struct plan_anchor_run *of, bool memory,
			double *ret_factor, double *ret_left)
{
	struct known known[RUNS_MOST];
	double m[RUNS_MOST][RUNS_MOST], weight[RUNS_MOST],
		chance = memory ? SPREAD_MEMORY_RUN : plan_constants.spread_row, sum = 0,
		own = shared(of, of, memory) + chance * chance, left = own;
	size_t n = closest(a, of, memory, known);

	*ret_factor = *ret_left = 1;
	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		weight[i] = known[i].common;
		for (size_t j = 0; j < n; j++)
			m[i][j] = shared(known[i].run, known[j].run, memory) +
				  (i == j ? chance * chance : 0);
	}
	solve(n, m, weight);
	for (size_t i = 0; i < n; i++) {
		sum += weight[i] *
		       log(memory ? known[i].run->memory_ratio : known[i].run->step_ratio);
		left -= weight[i] * known[i].common;
	}
	*ret_factor = exp(sum);
	*ret_left = sqrt(left / own);
	return true;
}

static void scale_time(struct plan *p, double k)
{
	double *parts[] = {
		&p->step_time_s.total, &p->step_time_s.compute,   &p->step_time_s.a2a,
		&p->step_time_s.pp,    &p->step_time_s.dp,        &p->step_time_s.cp,
		&p->step_time_s.tp,    &p->step_time_s.optimizer, &p->step_time_s.launch
	};
	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		*parts[i] *= k;
	double *rates[] = { &p->tokens_per_s_per_gpu, &p->tflops_per_gpu, &p->mfu };
	for (size_t i = 0; i < ELEMENTSOF(rates); i++)
		if (*rates[i] != MO_NONE_F)
			*rates[i] /= k;
}

/* What is computed from formulas (weights, gradients, optimizer) stays; the difference is
 * activations and reserve, which are estimates. Never below what is certain. */
static void scale_memory(struct plan *p, double k)
{
	struct plan_memory *m = &p->memory_gb;
	double sure = m->params + m->grads + m->optimizer, rest = m->total - sure,
	       wanted = MO_MAX(m->total * k, sure);
	double f = rest > 0 ? (wanted - sure) / rest : 1;
	m->activations *= f;
	m->comm *= f;
	m->reserve *= f;
	m->total = wanted;
	p->fits = m->total <= m->capacity;
	for (size_t i = 0; i < p->n_memory_stages; i++) {
		struct plan_stage *s = &p->memory_stages[i];

		mo_assert(k > 0);
		s->activations *= f;
		s->comm *= f;
		s->reserve *= f;
		s->total =
			s->params + s->grads + s->optimizer + s->activations + s->comm + s->reserve;
	}
}

/* Runs of the same stack, of the model with other software, of others: how many of each count. */
static char *tell(const struct plan_anchor *a, const struct plan_anchor_run *of, double step,
		  double memory)
{
	size_t n[3] = { 0 };

	for (size_t i = 0; i < a->n_runs; i++) {
		const struct plan_anchor_run *run = &a->runs[i];

		if (mo_streq(run->gpu, of->gpu) && mo_streq(run->precision, of->precision) &&
		    shared(of, run, false) > 0)
			n[same_stack(of, run) ? 0 : mo_streq(of->model, run->model) ? 1 : 2]++;
	}
	return mo_printf("calibrated by %zu measured runs of this stack, %zu of this model with "
			 "other software, %zu of other models on %s: step x %.3f, memory x %.3f",
			 n[0], n[1], n[2], of->gpu, step, memory);
}

static bool apply(const struct plan_anchor *a, const struct recipe *r, const char *gpu,
		  struct plan *p, double *ret_step)
{
	struct plan_anchor_run of = run_of(r, gpu, p);
	double step, memory, left, left_memory;
	bool timed = plan_anchor_expect(a, &of, false, &step, &left),
	     weighed = plan_anchor_expect(a, &of, true, &memory, &left_memory);

	*ret_step = step;
	if (timed || weighed) {
		_cleanup_(mo_freep) char *note = tell(a, &of, step, memory);

		if (p->n_notes && mo_starts_with(p->notes[0], "the step time is computed"))
			mo_str_set(&p->notes[0], note);
		else
			mo_strs_add(&p->notes, &p->n_notes, note);
		scale_time(p, step);
		p->error_pct *= left;
		if (weighed)
			scale_memory(p, memory);
	}
	run_done(&of);
	return timed || weighed;
}

/* Calibrated memory may turn out too much: plans that fit stay first, otherwise in the order of
 * the search. */
static void fitting_first(struct plan_doc *doc)
{
	for (size_t i = 1; i < doc->n_plans; i++)
		for (size_t k = i; k > 0 && doc->plans[k].fits && !doc->plans[k - 1].fits; k--) {
			struct plan p = doc->plans[k];

			doc->plans[k] = doc->plans[k - 1];
			doc->plans[k - 1] = p;
		}
}

bool plan_anchor_apply(const struct plan_anchor *a, const struct recipe *r, const char *gpu,
		       struct plan_doc *doc)
{
	bool any = false;
	double step, first = 1;

	for (size_t i = 0; i < doc->n_plans; i++) {
		any = apply(a, r, gpu, &doc->plans[i], &step) || any;
		if (i == 0)
			first = step;
	}
	fitting_first(doc);
	for (size_t i = 0; i < doc->n_scaling; i++)
		if (doc->scaling[i].step_time_s != MO_NONE_F) {
			doc->scaling[i].step_time_s *= first;
			doc->scaling[i].mfu /= first;
			if (doc->scaling[i].days != MO_NONE_F)
				doc->scaling[i].days *= first;
		}
	return any;
}
