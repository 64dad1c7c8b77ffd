/* All figures of one plan, and the notes that say what they rest on. One shape in, nothing of
 * other plans. */
#include "lib/plan/figures.h"

#include <math.h>

#include "lib/model/layout.h"
#include "lib/plan/memory.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"

static void note(struct plan *p, const char *text)
{
	mo_strs_add(&p->notes, &p->n_notes, text);
}

static void note_uneven(const struct shape *s, struct plan *p)
{
	_cleanup_(mo_freep) char *layout =
		s->vpp == 1 ? layout_spread(s->model->layers, MO_MAX(s->model->mtp, 0), s->pp)
			    : NULL;
	_cleanup_(mo_freep) char *text =
		mo_printf("layers do not divide evenly into the pipeline's stages: the slowest "
			  "stage sets the pace%s%s",
			  layout ? "; counted are " : "", layout ? layout : "");

	note(p, text);
}

/* All parameters of each stage, as if one rank held them. */
static void count_parameters(const struct shape *s, struct plan *p)
{
	struct shape whole = *s;

	whole.tp = whole.ep = whole.etp = 1;
	/* with dualpipe a rank holds two stages */
	whole.schedule = pipeline_is_v(s->schedule) ? s->schedule : "1f1b";
	for (size_t i = 0; i < p->n_memory_stages; i++) {
		double dense, experts;

		shape_weights(&whole, p->memory_stages[i].stage, &dense, &experts);
		p->memory_stages[i].parameters = (int64_t)llround(dense + experts);
	}
}

/* What the figures rest on and the recipe does not say. */
static void note_assumed(const struct shape *s, struct plan *p)
{
	_cleanup_(mo_freep) char *fabric =
		s->fabric.leaf_gpus > 0 ? mo_printf("leaf switches of %lld GPUs with 1/%.3g of "
						    "their bandwidth to the spine",
						    (long long)s->fabric.leaf_gpus, s->fabric.spine)
					: mo_strdup("no loss in the switches between them");
	_cleanup_(mo_freep) char *text =
		mo_printf("assumed: %snodes of %lld GPUs, %.0f Gbit/s of NICs per GPU, %s, no "
			  "failures and no stragglers",
			  s->model->moe ? "every expert gets the same share of the tokens, " : "",
			  (long long)s->gpu->domain_gpus, s->nic_gbps, fabric);

	note(p, text);
}

/* What is trained otherwise than it is counted. */
static void note_uncounted(const struct shape *s, struct plan *p)
{
	_cleanup_(mo_freep) char *fp4 =
		s->features.fp4
			? mo_printf("fp4 is counted as %s", s->precision ? s->precision : "bf16")
			: NULL;

	if (fp4)
		note(p, fp4);
	if (s->features.adapters)
		note(p, "LoRA: every parameter is counted as trained, which takes more memory than "
			"adapters do");
}

static const char *placement(const struct shape *s)
{
	int64_t domain = s->gpu->domain_gpus, experts = s->ep * s->etp;

	if (!s->model->moe || s->ep == 1)
		return "";
	return experts <= domain ? "; the experts' exchanges stay inside a node"
				 : "; the experts' exchanges leave the node";
}

/* GPUs that together hold the model once, as the white paper counts them: the stages times the
 * larger of a stage's attention and expert group. */
static void note_replica(const struct shape *s, struct plan *p)
{
	int64_t stage = MO_MAX(s->tp * s->cp, s->ep * s->etp), replica = s->pp * stage,
		replicas = s->gpus / replica;
	_cleanup_(mo_freep) char *stages =
		s->pp > 1 ? mo_printf(": %lld stages of %lld", (long long)s->pp, (long long)stage)
			  : mo_strdup("");
	_cleanup_(mo_freep) char *text =
		mo_printf("a replica is %lld GPU%s%s; %lld replica%s, %.3g M tokens each per "
			  "step%s",
			  (long long)replica, replica == 1 ? "" : "s", stages, (long long)replicas,
			  replicas == 1 ? "" : "s",
			  (double)(s->global * s->seq) / (double)replicas / 1e6, placement(s));

	note(p, text);
}

void plan_of(const struct shape *s, struct plan *ret)
{
	mo_desc_init(&plan_desc, ret);
	ret->parallelism =
		(struct plan_parallelism){ s->tp,  s->pp, s->vpp, s->ep,
					   s->etp, s->cp, s->dp,  mo_strdup(s->sharding) };
	ret->batch = (struct plan_batch){ s->micro, s->global, s->seq };
	ret->recompute = mo_strdup(s->recompute);
	ret->schedule = mo_strdup(s->schedule);
	memory_of(s, &ret->memory_gb);
	memory_stages_of(s, ret);
	count_parameters(s, ret);
	ret->fits = ret->memory_gb.total <= ret->memory_gb.capacity;
	time_of(s, ret);
	ret->error_pct = s->model->moe ? shape_k(s)->error_moe_pct : shape_k(s)->error_dense_pct;
	note(ret, "the step time is computed: four of five comparable public runs are within "
		  "error_pct of what is computed for them");
	note_assumed(s, ret);
	if (s->gpu->gemm_efficiency == MO_NONE_F)
		note(ret,
		     "nobody published a GEMM measurement of this GPU: 0.6 of its peak is assumed");
	note_uncounted(s, ret);
	if (s->model->mtp > 0)
		note(ret, "total_params leaves out the MTP layers; memory and FLOPs count them");
	if (s->stage_layers)
		note(ret, "stages have the layers that features.pipeline_layout gives them: the "
			  "fullest one sets the pace");
	else if (s->model->layers % (s->pp * s->vpp))
		note_uneven(s, ret);
	if (!ret->fits) {
		_cleanup_(mo_freep) char *text =
			mo_printf("does not fit: %.1f of %.1f GB on the fullest rank, reserve "
				  "included",
				  ret->memory_gb.total, ret->memory_gb.capacity);

		note(ret, text);
	}
	note_replica(s, ret);
}
