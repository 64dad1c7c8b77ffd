/* `parallelism: auto`: all shardings that divide the GPUs, the model and the batch; those that fit first, the fastest first. */
#include <errno.h>
#include <string.h>

#include "lib/plan/parts.h"

#define CANDIDATES_KEPT 64

static bool better(const struct plan *a, const struct plan *b)
{
	if (a->fits != b->fits)
		return a->fits;
	return a->fits ? a->step_time_s.total < b->step_time_s.total : a->memory_gb.total < b->memory_gb.total;
}

/* Insertion into a short list that is kept in order. */
static void consider(const struct shape *s, struct plan *best, size_t *n, size_t top)
{
	struct plan p;

	mo_desc_init(&plan_desc, &p);
	memory_of(s, &p.memory_gb);
	p.fits = p.memory_gb.total <= p.memory_gb.capacity;
	time_of(s, &p);
	size_t at = *n;

	while (at > 0 && better(&p, &best[at - 1]))
		at--;
	if (at >= top) {
		mo_desc_done(&plan_desc, &p);
		return;
	}
	mo_desc_done(&plan_desc, &p);
	plan_of(s, &p);
	if (*n == top)
		mo_desc_done(&plan_desc, &best[--*n]);
	memmove(&best[at + 1], &best[at], (*n - at) * sizeof(*best));
	best[at] = p;
	(*n)++;
}

static bool divides_model(const struct shape *s)
{
	const struct recipe_model *m = s->model;

	return m->heads % s->tp == 0 && (m->mla || m->kv_heads == MO_NONE || m->kv_heads % s->tp == 0) && (m->ffn == MO_NONE || m->ffn % s->tp == 0);
}

struct search { const struct recipe *recipe; struct shape s; struct plan *best; size_t n, top; };

static void try_batch(struct search *k)
{
	static const int64_t sizes[] = { 1, 2, 4, 8 };
	static const char *const levels[] = { "none", "full" };

	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		k->s.micro = k->recipe->micro != MO_NONE ? k->recipe->micro : sizes[i];
		if ((i > 0 && k->recipe->micro != MO_NONE) || k->s.global % (k->s.micro * k->s.dp))
			continue;
		for (size_t l = 0; l < ELEMENTSOF(levels); l++) {
			k->s.recompute = k->recipe->recompute ? k->recipe->recompute : levels[l];
			if (l == 0 || !k->recipe->recompute)
				consider(&k->s, k->best, &k->n, k->top);
		}
	}
}

static void try_stages(struct search *k)
{
	struct shape *s = &k->s;

	for (int64_t v = 1; s->pp * v <= s->model->layers && (v == 1 || s->pp > 1); v++) {
		if (v > 1 && (s->model->layers % (s->pp * v) || v > 16))
			continue;
		s->vpp = v;
		s->schedule = v > 1 ? "interleaved" : "1f1b";
		try_batch(k);
	}
}

static void try_experts(struct search *k)
{
	struct shape *s = &k->s;
	int64_t ranks = s->gpus / s->pp, experts = s->model->moe ? s->model->moe->experts : 1;

	s->etp = 1;
	for (s->ep = 1; s->ep <= experts; s->ep++)
		if (experts % s->ep == 0 && ranks % s->ep == 0)
			try_stages(k);
}

int plan_search(const struct recipe *r, const struct shape *base, size_t top, struct plan_doc *ret, struct mo_error *err)
{
	struct plan best[CANDIDATES_KEPT + 1];
	struct search k = { .recipe = r, .s = *base, .best = best, .top = MO_MIN(top, (size_t)CANDIDATES_KEPT) };
	struct shape *s = &k.s;
	int64_t context = s->seq > 16384 ? MO_MIN(s->seq / 8192, 16) : 1;     /* context parallelism pays for long sequences only */

	for (s->tp = 1; s->tp <= MO_MIN(s->gpus, s->gpu->domain_gpus); s->tp++)
		for (s->cp = 1; s->cp <= context; s->cp *= 2)
			for (s->pp = 1; s->pp <= MO_MIN(s->gpus, s->model->layers); s->pp++) {
				if (s->gpus % (s->tp * s->cp * s->pp) || s->seq % s->cp || !divides_model(s))
					continue;
				s->dp = s->gpus / (s->tp * s->cp * s->pp);
				if (s->global % s->dp == 0)
					try_experts(&k);
			}
	for (size_t i = 0; i < k.n; i++)
		*MO_GROW(ret->plans, ret->n_plans) = best[i];
	return k.n ? 0 : mo_error_set(err, -EINVAL, "plan: no sharding of %lld GPUs divides the model and a global batch of %lld: change cluster.gpus or batch.global",
				      (long long)base->gpus, (long long)base->global);
}
