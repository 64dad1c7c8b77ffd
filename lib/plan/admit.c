/* Admission: what certainly cannot run is refused, what probably cannot is a warning. */
#include "lib/plan/admit.h"

#include <string.h>

#include "lib/model/traits.h"
#include "lib/plan/plan.h"

/* per parameter: weights, FP32 gradient, FP32 master and two moments */
#define STATE_BYTES 18.0

/* GB of states that a rank holds at least. PyTorch programs and others shard by themselves, so
 * the recipe's sharding says nothing of them: they may spread everything over all GPUs. */
static double states_gb(const struct recipe *r, const struct plan_doc *doc)
{
	const struct plan_memory *m = &doc->plans[0].memory_gb;
	double planned = m->params + m->grads + m->optimizer,
	       spread = STATE_BYTES * (double)doc->model.total_params / (double)doc->hardware.gpus /
			1e9;

	bool known = (r->engine.traits && r->engine.traits->sharding_told) ||
		     mo_streq(r->parallelism.sharding, "zero3");

	return known ? planned : MO_MIN(planned, spread);
}

enum plan_verdict plan_admit(const struct recipe *r, const struct plan_doc *doc, char **ret_text)
{
	*ret_text = NULL;
	if (doc->n_plans == 0 || doc->plans[0].fits)
		return PLAN_ADMIT;
	const struct plan *p = &doc->plans[0];
	const struct plan_memory *m = &p->memory_gb;
	double states = states_gb(r, doc);
	const char *nearest = "";

	for (size_t i = 0; i < p->n_notes; i++)
		if (strstr(p->notes[i], "that fits: ") ||
		    mo_starts_with(p->notes[i], "no plan that differs"))
			nearest = p->notes[i];
	if (states > m->capacity) {
		*ret_text = mo_printf("cluster.gpus: does not fit: parameters, gradients and "
				      "optimizer states alone take %.1f GB of the %.1f GB of a %s: "
				      "use more GPUs or another parallelism%s%s",
				      states, m->capacity, doc->hardware.gpu, *nearest ? "; " : "",
				      nearest);
		return PLAN_REFUSE;
	}
	*ret_text = mo_printf("memory: %.1f of %.1f GB planned on the fullest rank (parameters "
			      "%.1f, gradients %.1f, optimizer %.1f, activations %.1f, buffers "
			      "%.1f, reserve %.1f): it may run out of memory; %s",
			      m->total, m->capacity, m->params, m->grads, m->optimizer,
			      m->activations, m->comm, m->reserve,
			      *nearest ? nearest : "moectl plan shows the details");
	return PLAN_WARN;
}
