/* `parallelism: auto`: every legal tp, cp, pp, ep, etp, sharding, recompute, micro-batch, schedule and vpp of these GPUs, this model and this batch. Exact: a group is passed over only
 * when the work of its average stage alone is slower than the last plan that is kept. Order: plans that fit, the fastest first, experts inside a node first when that costs less than a tenth; equal ones by less memory, then by the smaller groups,
 * so the answer does not depend on the machine. Memory: the plans that are kept, nothing else. */
#include "lib/plan/search.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define CANDIDATES_KEPT 64
#define CP_MAX 32
#define CP_TOKENS_MIN 512        /* tokens of one of the two chunks that a rank of balanced causal context parallelism holds */
#define VPP_MAX 16
#define MICRO_MAX 64u           /* that engine.args may name */

static const char *const schedules_engine[] = { "1f1b", "interleaved", NULL };
static const char *const schedules_all[] = { "1f1b", "interleaved", "zb1p", "zbv", "v-half", "v-min", "dualpipe", NULL };
static const int64_t micro_sizes[] = { 1, 2, 4, 8, 16 };

struct candidate { struct shape s; struct plan p; };   /* p: numbers only, no text */
struct search { const struct recipe *recipe; const struct plan_options *options; struct shape s; struct candidate best[CANDIDATES_KEPT + 1]; size_t n, top; double floor; char *refused; bool wide; };   /* wide: what the recipe fixes is none of the usual schedules, shardings and micro-batches */

static int compare_groups(const struct shape *a, const struct shape *b)
{
	const int64_t x[] = { a->tp, a->cp, a->pp, a->ep, a->etp, a->micro, a->vpp }, y[] = { b->tp, b->cp, b->pp, b->ep, b->etp, b->micro, b->vpp };

	for (size_t i = 0; i < ELEMENTSOF(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	int k = strcmp(a->schedule, b->schedule);

	return k ? k : strcmp(a->recompute, b->recompute) ? strcmp(b->recompute, a->recompute) : strcmp(a->sharding, b->sharding);
}

/* An exchange between nodes shares the network with everyone and waits for the slowest NIC: a plan that leaves the node must be that much faster. */
#define LEAVE_NODE 1.1

double search_rank(const struct shape *s, double step_s)
{
	double sequence_s = step_s / (double)s->global;

	return s->model->moe && s->ep > 1 && s->ep * s->etp > s->gpu->domain_gpus ? sequence_s * LEAVE_NODE : sequence_s;
}

static bool better(const struct candidate *a, const struct candidate *b)
{
	double x = search_rank(&a->s, a->p.step_time_s.total), y = search_rank(&b->s, b->p.step_time_s.total), gx = a->p.memory_gb.total, gy = b->p.memory_gb.total;

	if (a->p.fits != b->p.fits)
		return a->p.fits;
	if (a->p.fits ? x != y : gx != gy)
		return a->p.fits ? x < y : gx < gy;
	return gx != gy ? gx < gy : compare_groups(&a->s, &b->s) < 0;
}

const char *search_refuses(const struct plan_options *o, const struct shape *s)
{
	struct plan p = {
		.parallelism = { s->tp, s->pp, s->vpp, s->ep, s->etp, s->cp, s->dp, (char *)s->sharding },
		.batch = { s->micro, s->global, s->seq }, .recompute = (char *)s->recompute, .schedule = (char *)s->schedule,
	};

	return o->refuses && !o->open ? o->refuses(o->refuses_arg, &p) : NULL;
}

/* Asked only of what would be kept: the recipe's checks take a thousand times as long as a plan. */
static bool allowed(struct search *k, const struct shape *s)
{
	const char *why = search_refuses(k->options, s);

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

	if (k->wide && !allowed(k, &k->s))      /* most are refused here */
		return;
	if (full_of_fitting(k) && k->floor >= search_rank(&k->best[k->n - 1].s, k->best[k->n - 1].p.step_time_s.total))
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
	double dense = pass_total(&c.dense.forward) + pass_total(&c.dense.backward), expert = pass_total(&c.moe.forward) + pass_total(&c.moe.backward);
	double ends = pass_total(&c.embedding.forward) + pass_total(&c.embedding.backward) + pass_total(&c.head.forward) + pass_total(&c.head.backward);

	return (dense * (double)(s->model->layers - moe) + expert * (double)moe + ends) / (double)s->pp * (double)shape_micro_batches(s);
}

bool search_legal(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	if (s->one_micro && (s->pp > 1 || s->global != s->micro * s->dp))
		return false;
	int64_t ranks = s->tp * s->cp * s->pp, n = s->micro * s->dp, chunks = pipeline_chunks(s->schedule, s->vpp);

	if (s->tp > s->gpu->domain_gpus || m->heads % s->tp || (!m->mla && m->kv_heads != MO_NONE && m->kv_heads % s->tp) || (m->ffn != MO_NONE && m->ffn % s->tp))
		return false;
	if (s->gpus % ranks || s->dp != s->gpus / ranks || s->global % n || s->pp * chunks > m->layers || (s->even_layers && m->layers % s->pp))
		return false;
	if (s->cp > 1 && (s->seq % (2 * s->cp) || s->seq / (2 * s->cp) < CP_TOKENS_MIN))
		return false;
	if (m->moe ? m->moe->experts % s->ep || m->moe->ffn % s->etp || s->gpus / s->pp % (s->ep * s->etp) : s->ep * s->etp > 1)
		return false;
	if (chunks > 1 && (s->pp == 1 || m->layers % (s->pp * chunks)))
		return false;
	int64_t micro_batches = s->global / n;

	if (mo_streq(s->schedule, "interleaved"))
		return s->vpp > 1 && micro_batches % s->pp == 0;
	if (mo_streq(s->schedule, "dualpipe"))
		return s->pp > 1 && s->pp % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2 * s->pp;
	/* Engines split the weight gradient off only where nothing is recomputed as a whole. */
	return s->pp > 1 ? mo_streq(s->schedule, "1f1b") || !mo_streq(s->recompute, "full") : mo_streq(s->schedule, "1f1b");
}

static void try_schedules(struct search *k)
{
	bool all = k->options->open || k->wide;
	const char *const *schedules = all ? schedules_all : schedules_engine;
	struct shape *s = &k->s;

	s->vpp = 1;
	s->schedule = "1f1b";
	if (!search_legal(s))
		return;
	s->schedule = all ? "dualpipe" : "1f1b";            /* it hides the most of the experts' exchanges: below all that are tried */
	k->floor = search_rank(s, floor_of(s));
	for (size_t i = 0; schedules[i]; i++) {
		bool interleaved = mo_streq(schedules[i], "interleaved");

		s->schedule = schedules[i];
		for (s->vpp = interleaved ? 2 : pipeline_chunks(schedules[i], 1); s->vpp <= (interleaved ? MO_MIN(s->model->layers / s->pp, VPP_MAX) : 2); s->vpp++) {
			if (search_legal(s))
				consider(k);
			if (!interleaved)
				break;
		}
	}
}

/* What the engine can be told, in its order; with open all. A recipe that leaves the sizes to the search has no sharding of its own. */
static size_t shardings_of(const struct search *k, const char *ret[static 4])
{
	static const char *const open[] = { "zero1", "zero3" }, *const usual[] = { "zero1" }, *const wide[] = { "none", "zero1", "zero2", "zero3" };
	const char *const *from = k->wide ? wide : k->options->open ? open : k->options->n_shardings ? k->options->shardings : usual;
	size_t n = k->wide ? ELEMENTSOF(wide) : k->options->open ? ELEMENTSOF(open) : k->options->n_shardings ? MO_MIN(k->options->n_shardings, 4u) : ELEMENTSOF(usual);

	for (size_t i = 0; i < n; i++)
		ret[i] = from[i];
	return n;
}

static void try_batch(struct search *k)
{
	const char *given = plan_recompute_given(k->recipe), *levels[] = { "none", mo_streq(k->s.model->attention, "unfused") ? "selective" : NULL, "full" }, *shardings[4];
	size_t n_shardings = shardings_of(k, shardings);

	for (size_t i = 0; i < (k->wide ? MICRO_MAX : ELEMENTSOF(micro_sizes)); i++) {
		k->s.micro = k->recipe->micro != MO_NONE ? k->recipe->micro : k->wide ? (int64_t)i + 1 : micro_sizes[i];
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
		for (s->etp = 1; s->etp <= MO_MIN(ranks, s->model->moe ? s->gpu->domain_gpus : 1); s->etp++)
			if (experts % s->ep == 0 && ranks % (s->ep * s->etp) == 0)
				try_batch(k);
}

static const char *placement(const struct shape *s)
{
	int64_t domain = s->gpu->domain_gpus, experts = s->ep * s->etp;

	if (!s->model->moe || s->ep == 1)
		return "";
	return experts <= domain ? "; the experts' exchanges stay inside a node" : "; the experts' exchanges leave the node";
}

/* GPUs that together hold the model once, as the white paper counts them: the stages times the larger of a stage's attention and expert group. */
void plan_note_replica(const struct shape *s, struct plan *p)
{
	int64_t stage = MO_MAX(s->tp * s->cp, s->ep * s->etp), replica = s->pp * stage, replicas = s->gpus / replica;
	_cleanup_(mo_freep) char *stages = s->pp > 1 ? mo_printf(": %lld stages of %lld", (long long)s->pp, (long long)stage) : mo_strdup("");
	_cleanup_(mo_freep) char *text = mo_printf("a replica is %lld GPU%s%s; %lld replica%s, %.3g M tokens each per step%s", (long long)replica, replica == 1 ? "" : "s", stages, (long long)replicas,
						   replicas == 1 ? "" : "s", (double)(s->global * s->seq) / (double)replicas / 1e6, placement(s));

	mo_strs_add(&p->notes, &p->n_notes, text);
}

/* Of two plans the later one may be the faster: it has to be a tenth faster when its experts' exchanges share the network. */
static void note_order(struct plan_doc *doc)
{
	for (size_t i = 1; i < doc->n_plans; i++)
		if (doc->plans[i].fits && doc->plans[i - 1].fits && doc->plans[i].tokens_per_s_per_gpu > doc->plans[i - 1].tokens_per_s_per_gpu) {
			mo_strs_add(&doc->plans[0].notes, &doc->plans[0].n_notes, "plans whose experts' exchanges leave the node stand behind those that are less than a tenth slower: they share the network with others");
			return;
		}
}

static void try_all(struct search *k)
{
	struct shape *s = &k->s;

	for (s->tp = 1; s->tp <= MO_MIN(s->gpus, s->gpu->domain_gpus); s->tp++)
		for (s->cp = 1; s->cp <= MO_MIN(CP_MAX, s->gpus / s->tp); s->cp *= 2)
			for (s->pp = 1; s->pp <= (s->one_micro ? 1 : MO_MIN(s->gpus, s->model->layers)); s->pp++) {
				s->dp = s->gpus / (s->tp * s->cp * s->pp);
				s->global = s->one_micro ? s->micro * s->dp : s->global;
				if (s->gpus % (s->tp * s->cp * s->pp) == 0 && s->model->heads % s->tp == 0 && s->global % s->dp == 0)
					try_experts(k);
			}
}

int plan_search(const struct recipe *r, const struct shape *base, const struct plan_options *o, size_t top, struct plan_doc *ret, struct mo_error *err)
{
	struct search *k = mo_alloc(sizeof(*k));

	k->recipe = r;
	k->options = o;
	k->s = *base;
	k->top = MO_MIN(top, (size_t)CANDIDATES_KEPT);
	try_all(k);
	k->wide = k->n == 0 && k->refused;       /* engine.args may name what is not looked for unasked */
	if (k->wide)
		try_all(k);
	for (size_t i = 0; i < k->n; i++) {
		plan_of(&k->best[i].s, MO_ADD(ret, plans, &plan_desc));
		plan_note_replica(&k->best[i].s, &ret->plans[i]);
	}
	if (k->n && !o->figures) {
		note_order(ret);
		search_neighbours(r, o, &k->best[0].s, &ret->plans[0]);
	}
	int found = k->n > 0 ? 0 : search_nothing(base, k->refused, err);

	free(k->refused);
	free(k);
	return found;
}
