/* scaling[]: the same global batch on other numbers of GPUs. With `parallelism: auto` every size
 * has its own best plan, otherwise dp takes the difference. Efficiency is tokens per second and
 * GPU against the first size that fits. Assumptions that a row rests on are in its note. */
#include "lib/plan/scale.h"

#include <errno.h>

#include "lib/base/buf.h"
#include "lib/plan/plan_desc.h"
#include "lib/plan/plans.h"
#include "lib/plan/shape.h"

#define SCALE_MAX 64
#define DAY_S 86400.0

static void describe(const struct plan *p, struct mo_buf *b)
{
	const struct plan_parallelism *x = &p->parallelism;

	mo_buf_printf(b, "tp %lld pp %lld vpp %lld ep %lld cp %lld dp %lld micro %lld%s%s",
		      (long long)x->tp, (long long)x->pp, (long long)x->vpp, (long long)x->ep,
		      (long long)x->cp, (long long)x->dp, (long long)p->batch.micro,
		      mo_streq(p->recompute, "none") ? "" : " recompute ",
		      mo_streq(p->recompute, "none") ? "" : p->recompute);
}

static void fill(const struct plan *p, const struct plan_options *o, double *reference,
		 struct plan_scale *ret)
{
	struct mo_buf b = { 0 };

	if (*reference == 0 && p->fits)
		*reference = p->tokens_per_s_per_gpu;
	ret->efficiency = *reference > 0 ? p->tokens_per_s_per_gpu / *reference : MO_NONE_F;
	ret->step_time_s = p->step_time_s.total;
	ret->mfu = p->mfu;
	if (o->tokens > 0)
		ret->days = o->tokens / (p->tokens_per_s_per_gpu * (double)ret->gpus) / DAY_S;
	if (!p->fits)
		mo_buf_str(&b, "does not fit into memory; ");
	describe(p, &b);
	ret->note = mo_buf_take(&b);
}

void scaling_of(const struct recipe *r, const struct shape *base, const struct plan_options *o,
		struct plan_doc *doc)
{
	struct plan_options figures = *o;
	double reference = 0;

	figures.figures = true;

	for (size_t i = 0; i < o->n_scale && i < SCALE_MAX; i++) {
		struct plan_scale *scale = MO_GROW(doc->scaling, doc->n_scaling);
		struct plan_doc one;
		struct mo_error why = { 0 };
		struct shape s = *base;

		*scale = (struct plan_scale){ o->scale[i], MO_NONE_F, MO_NONE_F,
					      MO_NONE_F,   MO_NONE_F, NULL };
		s.gpus = o->scale[i];
		mo_desc_init(&plan_doc_desc, &one);
		if (s.gpus < 1)
			scale->note = mo_strdup("not a number of GPUs");
		else if (plans_for(r, &s, &figures, 1, &one, &why) < 0)
			scale->note = mo_strdup(mo_error_text(&why, -EINVAL));
		else
			fill(&one.plans[0], o, &reference, scale);
		mo_error_done(&why);
		mo_desc_done(&plan_doc_desc, &one);
	}
}
