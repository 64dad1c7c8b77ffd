/* `parallelism: auto`: every legal tp, cp, pp, ep, etp, sharding, recompute, micro-batch,
 * schedule and vpp of these GPUs, this model and this batch. Exact: a group is passed over only
 * when the work of its average stage alone is slower than the last plan that is kept. Order:
 * plans that fit, the fastest first, experts inside a node first when that costs less than a
 * tenth; equal ones by less memory, then by the smaller groups, so the answer does not depend on
 * the machine. Memory: the plans that are kept, nothing else. */
#include "lib/plan/search.h"

#include <errno.h>
#include <string.h>

#include "lib/plan/features.h"
#include "lib/plan/figures.h"
#include "lib/plan/legal.h"
#include "lib/plan/memory.h"
#include "lib/plan/neighbours.h"
#include "lib/plan/params.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"

#define CANDIDATES_KEPT 64
#define CP_MAX 32
#define VPP_MAX 16
#define MICRO_MAX 64u /* that engine.args may name */

static const char *const schedules_engine[] = { "1f1b", "interleaved", NULL };
static const char *const schedules_all[] = { "1f1b",   "interleaved", "zb1p",     "zbv",
					     "v-half", "v-min",       "dualpipe", NULL };
static const int64_t micro_sizes[] = { 1, 2, 4, 8, 16 };

struct candidate {
	struct shape s;
	struct plan p;
}; /* p: numbers only, no text */
/* What is searched beyond the usual schedules, shardings and micro-batches. */
struct width {
	enum { SHARDINGS_USUAL, SHARDINGS_NONE, SHARDINGS_ALL } shardings;
	bool schedules, micros;
};
/* engine.args may say what is not searched unasked. What they do not speak of stays usual (another
 * sharding is another way to save): the first row with plans is the answer. */
static const struct width widths[] = {
	{ SHARDINGS_USUAL, false, false }, { SHARDINGS_NONE, false, false },
	{ SHARDINGS_USUAL, true, false },  { SHARDINGS_USUAL, false, true },
	{ SHARDINGS_ALL, false, false },   { SHARDINGS_NONE, true, false },
	{ SHARDINGS_NONE, false, true },   { SHARDINGS_USUAL, true, true },
	{ SHARDINGS_NONE, true, true },    { SHARDINGS_ALL, true, true },
};
struct search {
	const struct recipe *recipe;
	const struct plan_options *options;
	struct shape s;
	struct candidate best[CANDIDATES_KEPT + 1];
	size_t n, top;
	double floor;
	char *refused;
	const struct width *width;
};

static int compare_groups(const struct shape *a, const struct shape *b)
{
	const int64_t x[] = { a->tp, a->cp, a->pp, a->ep, a->etp, a->micro, a->vpp },
		      y[] = { b->tp, b->cp, b->pp, b->ep, b->etp, b->micro, b->vpp };

	for (size_t i = 0; i < ELEMENTSOF(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	int k = strcmp(a->schedule, b->schedule);

	return k                                    ? k
	       : strcmp(a->recompute, b->recompute) ? strcmp(b->recompute, a->recompute)
						    : strcmp(a->sharding, b->sharding);
}

static bool better(const struct candidate *a, const struct candidate *b)
{
	double x = shape_rank(&a->s, a->p.step_time_s.total),
	       y = shape_rank(&b->s, b->p.step_time_s.total), gx = a->p.memory_gb.total,
	       gy = b->p.memory_gb.total;

	if (a->p.fits != b->p.fits)
		return a->p.fits;
	if (a->p.fits ? x != y : gx != gy)
		return a->p.fits ? x < y : gx < gy;
	return gx != gy ? gx < gy : compare_groups(&a->s, &b->s) < 0;
}

/* Asked only of what would be kept: the recipe's checks take a thousand times as long as a plan. */
static bool allowed(struct search *k, const struct shape *s)
{
	const char *why = shape_refused(k->options, s);

	if (why && !k->refused)
		k->refused = mo_strdup(why);
	return !why;
}

/* Insertion into the short list, which is kept in order. */
static void keep(struct search *k, const struct candidate *c)
{
	size_t at = k->n;

	while (at > 0 && better(c, &k->best[at - 1]))
		at--;
	if (at >= k->top || !allowed(k, &c->s))
		return;
	if (k->n == k->top)
		k->n--;
	memmove(&k->best[at + 1], &k->best[at], (k->n - at) * sizeof(*k->best));
	k->best[at] = *c;
	k->n++;
}

static bool full_of_fitting(const struct search *k)
{
	return k->n == k->top && k->best[k->n - 1].p.fits;
}

static void consider(struct search *k)
{
	struct candidate c = { .s = k->s };

	if (k->width != widths && !allowed(k, &k->s)) /* most are refused here */
		return;
	if (full_of_fitting(k) &&
	    k->floor >= shape_rank(&k->best[k->n - 1].s, k->best[k->n - 1].p.step_time_s.total))
		return;
	memory_of(&k->s, &c.p.memory_gb);
	c.p.fits = c.p.memory_gb.total <= c.p.memory_gb.capacity;
	if (!c.p.fits && full_of_fitting(k))
		return;
	time_of(&k->s, &c.p);
	keep(k, &c);
}

/* What no schedule can beat: all layers of a pipeline, spread evenly, for every micro-batch. */
static double floor_of(const struct shape *s)
{
	struct costs c;
	int64_t moe = plan_moe_layers(s->model, 0, s->model->layers);

	costs_of(s, &c);
	double dense = pass_total(&c.dense.forward) + pass_total(&c.dense.backward),
	       expert = pass_total(&c.moe.forward) + pass_total(&c.moe.backward);
	double ends = pass_total(&c.embedding.forward) + pass_total(&c.embedding.backward) +
		      pass_total(&c.head.forward) + pass_total(&c.head.backward);

	return (dense * (double)(s->model->layers - moe) + expert * (double)moe + ends) /
	       (double)s->pp * (double)shape_micro_batches(s);
}

static void try_schedules(struct search *k)
{
	bool all = k->options->open || k->width->schedules;
	const char *const *schedules = all ? schedules_all : schedules_engine;
	struct shape *s = &k->s;

	s->vpp = 1;
	s->schedule = "1f1b";
	if (!shape_is_legal(s))
		return;
	/* it hides the most of the experts' exchanges: below all that are tried */
	s->schedule = all ? "dualpipe" : "1f1b";
	k->floor = shape_rank(s, floor_of(s));
	for (size_t i = 0; schedules[i]; i++) {
		bool interleaved = mo_streq(schedules[i], "interleaved");

		s->schedule = schedules[i];
		for (s->vpp = interleaved ? 2 : pipeline_chunks(schedules[i], 1);
		     s->vpp <= (interleaved ? MO_MIN(s->model->layers / s->pp, VPP_MAX) : 2);
		     s->vpp++) {
			if (shape_is_legal(s))
				consider(k);
			if (!interleaved)
				break;
		}
	}
}

/* What the engine has flags for, in its order; with open all. A recipe that leaves the sizes to
 * the search has no sharding of its own. */
static size_t shardings_of(const struct search *k, const char *ret[static 4])
{
	static const char *const open[] = { "zero1", "zero3" }, *const usual[] = { "zero1" },
				 *const all[] = { "none", "zero1", "zero2", "zero3" };
	const char *const *from = k->width->shardings       ? all
				  : k->options->open        ? open
				  : k->options->n_shardings ? k->options->shardings
							    : usual;
	size_t n = k->width->shardings == SHARDINGS_ALL    ? ELEMENTSOF(all)
		   : k->width->shardings == SHARDINGS_NONE ? 1
		   : k->options->open                      ? ELEMENTSOF(open)
		   : k->options->n_shardings               ? MO_MIN(k->options->n_shardings, 4u)
							   : ELEMENTSOF(usual);

	for (size_t i = 0; i < n; i++)
		ret[i] = from[i];
	return n;
}

static void try_batch(struct search *k)
{
	const char *given = plan_recompute_given(k->recipe),
		   *levels[] = { "none",
				 mo_streq(k->s.model->attention, "unfused") ? "selective" : NULL,
				 "full" },
		   *shardings[4];
	size_t n_shardings = shardings_of(k, shardings);

	for (size_t i = 0; i < (k->width->micros ? MICRO_MAX : ELEMENTSOF(micro_sizes)); i++) {
		k->s.micro = k->recipe->micro != MO_NONE ? k->recipe->micro
			     : k->width->micros          ? (int64_t)i + 1
							 : micro_sizes[i];
		if ((i > 0 && k->recipe->micro != MO_NONE) || k->s.global % (k->s.micro * k->s.dp))
			continue;
		for (size_t l = 0; l < ELEMENTSOF(levels); l++)
			for (size_t z = 0; z < n_shardings; z++) {
				k->s.recompute = given ? given : levels[l];
				k->s.sharding = shardings[z];
				if (k->s.recompute && (l == 0 || !given))
					try_schedules(k);
			}
	}
}

static void try_experts(struct search *k)
{
	struct shape *s = &k->s;
	int64_t ranks = s->gpus / s->pp, experts = s->model->moe ? s->model->moe->experts : 1;

	for (s->ep = 1; s->ep <= MO_MIN(experts, ranks); s->ep++)
		for (s->etp = 1; s->etp <= MO_MIN(ranks, s->model->moe ? s->gpu->domain_gpus : 1);
		     s->etp++)
			if (experts % s->ep == 0 && ranks % (s->ep * s->etp) == 0)
				try_batch(k);
}

/* Of two plans the later one may be the faster: it has to be a tenth faster when its experts'
 * exchanges share the network. */
static void note_order(struct plan_doc *doc)
{
	for (size_t i = 1; i < doc->n_plans; i++)
		if (doc->plans[i].fits && doc->plans[i - 1].fits &&
		    doc->plans[i].tokens_per_s_per_gpu > doc->plans[i - 1].tokens_per_s_per_gpu) {
			mo_strs_add(&doc->plans[0].notes, &doc->plans[0].n_notes,
				    "plans whose experts' exchanges leave the node stand behind "
				    "those that are less than a tenth slower: they share the "
				    "network with others");
			return;
		}
}

static void try_all(struct search *k)
{
	struct shape *s = &k->s;

	for (s->tp = 1; s->tp <= MO_MIN(s->gpus, s->gpu->domain_gpus); s->tp++)
		for (s->cp = 1; s->cp <= MO_MIN(CP_MAX, s->gpus / s->tp); s->cp *= 2)
			for (s->pp = 1;
			     s->pp <= (s->one_micro ? 1 : MO_MIN(s->gpus, s->model->layers));
			     s->pp++) {
				s->dp = s->gpus / (s->tp * s->cp * s->pp);
				s->global = s->one_micro ? s->micro * s->dp : s->global;
				if (s->gpus % (s->tp * s->cp * s->pp) == 0 &&
				    s->model->heads % s->tp == 0 && s->global % s->dp == 0)
					try_experts(k);
			}
}

/* Numbers that are always possible, as all GPUs can be data-parallel: divisors of the batch, and
 * multiples of the GPUs. refused: why what can be divided is refused, NULL = nothing can. */
static int nothing_found(const struct shape *base, const char *refused, struct mo_error *err)
{
	int64_t each = base->gpus * base->micro, all = MO_MAX(base->global / base->micro, 1),
		fewer = MO_MIN(base->gpus, all), more = base->gpus,
		batch = base->global / each * each;

	if (refused)
		return mo_error_set(err, -EINVAL,
				    "plan: no sharding that parallelism: auto may choose passes "
				    "the recipe's checks: %s: change that, or give the sizes",
				    refused);
	while (all % fewer)
		fewer--;
	while (more < MO_MIN(all, PLAN_GPUS_MAX) && all % more)
		more++;
	_cleanup_(mo_freep) char *gpus =
		more <= all && all % more == 0
			? mo_printf("%lld or %lld", (long long)fewer, (long long)more)
			: mo_printf("%lld", (long long)fewer);
	_cleanup_(mo_freep) char *batches =
		batch > 0 ? mo_printf("%lld or %lld", (long long)batch, (long long)(batch + each))
			  : mo_printf("%lld", (long long)each);

	return mo_error_set(err, -EINVAL,
			    "plan: no sharding of cluster.gpus %lld divides the model's %lld "
			    "layers and %lld heads and batch.global %lld: use cluster.gpus %s, or "
			    "batch.global %s",
			    (long long)base->gpus, (long long)base->model->layers,
			    (long long)base->model->heads, (long long)base->global, gpus, batches);
}

int plan_search(const struct recipe *r, const struct shape *base, const struct plan_options *o,
		size_t top, struct plan_doc *ret, struct mo_error *err)
{
	struct search *k = mo_alloc(sizeof(*k));

	k->recipe = r;
	k->options = o;
	k->s = *base;
	k->top = MO_MIN(top, (size_t)CANDIDATES_KEPT);
	for (size_t i = 0; i < ELEMENTSOF(widths) && k->n == 0 && (i == 0 || k->refused); i++) {
		k->width = &widths[i];
		try_all(k);
	}
	for (size_t i = 0; i < k->n; i++) {
		plan_of(&k->best[i].s, MO_ADD(ret, plans, &plan_desc));
	}
	if (k->n && !o->figures) {
		note_order(ret);
		neighbours_compare(r, o, &k->best[0].s, &ret->plans[0]);
	}
	int found = k->n > 0 ? 0 : nothing_found(base, k->refused, err);

	free(k->refused);
	free(k);
	return found;
}
