/* Which sizes are possible, which of them the recipe may have, and which of two plans comes
 * first. What searches and what compares ask the same questions. */
#include "lib/plan/legal.h"

#include "lib/plan/pipeline.h"
#include "lib/plan/shape.h"

/* tokens of one of the two chunks that a rank of balanced causal context parallelism holds */
#define CP_TOKENS_MIN 512
/* An exchange between nodes shares the network with everyone and waits for the slowest NIC: a
 * plan that leaves the node must be that much faster. */
#define LEAVE_NODE 1.1

double shape_rank(const struct shape *s, double step_s)
{
	double sequence_s = step_s / (double)s->global;

	return s->model->moe && s->ep > 1 && s->ep * s->etp > s->gpu->domain_gpus
		       ? sequence_s * LEAVE_NODE
		       : sequence_s;
}

const char *shape_refused(const struct plan_options *o, const struct shape *s)
{
	struct plan p = {
		.parallelism = { s->tp, s->pp, s->vpp, s->ep, s->etp, s->cp, s->dp,
				 (char *)s->sharding },
		.batch = { s->micro, s->global, s->seq },
		.recompute = (char *)s->recompute,
		.schedule = (char *)s->schedule,
	};

	return o->refuses && !o->open ? o->refuses(o->refuses_arg, &p) : NULL;
}

bool shape_is_legal(const struct shape *s)
{
	const struct recipe_model *m = s->model;
	if (s->one_micro && (s->pp > 1 || s->global != s->micro * s->dp))
		return false;
	int64_t ranks = s->tp * s->cp * s->pp, n = s->micro * s->dp,
		chunks = pipeline_chunks(s->schedule, s->vpp);

	if (s->tp > s->gpu->domain_gpus || m->heads % s->tp ||
	    (!m->mla && m->kv_heads != MO_NONE && m->kv_heads % s->tp) ||
	    (m->ffn != MO_NONE && m->ffn % s->tp))
		return false;
	if (s->gpus % ranks || s->dp != s->gpus / ranks || s->global % n ||
	    s->pp * chunks > m->layers || (s->even_layers && m->layers % s->pp))
		return false;
	if (s->cp > 1 && (s->seq % (2 * s->cp) || s->seq / (2 * s->cp) < CP_TOKENS_MIN))
		return false;
	if (m->moe ? m->moe->experts % s->ep || m->moe->ffn % s->etp ||
			     s->gpus / s->pp % (s->ep * s->etp)
		   : s->ep * s->etp > 1)
		return false;
	if (chunks > 1 && (s->pp == 1 || m->layers % (s->pp * chunks)))
		return false;
	int64_t micro_batches = s->global / n;

	if (mo_streq(s->schedule, "interleaved"))
		return s->vpp > 1 && micro_batches % s->pp == 0;
	if (mo_streq(s->schedule, "dualpipe"))
		return s->pp > 1 && s->pp % 2 == 0 && micro_batches % 2 == 0 &&
		       micro_batches >= 2 * s->pp;
	/* Engines split the weight gradient off only where nothing is recomputed as a whole. */
	return s->pp > 1 ? mo_streq(s->schedule, "1f1b") || !mo_streq(s->recompute, "full")
			 : mo_streq(s->schedule, "1f1b");
}
