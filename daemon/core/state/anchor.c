/* See anchor.h. */
#include "daemon/core/state/anchor.h"

#include "daemon/core/state/state.h"

static const struct mo_field anchor_fields[] = {
	MO_D(anchor, software, MO_STR, "engine of the run"),
	MO_D(anchor, version, MO_STR, "ROCm of its nodes; null: not reported"),
	MO_D(anchor, gpu, MO_STR, "model of its GPUs"),
	MO_D(anchor, precision, MO_STR, "number format that it trained in"),
	MO_D(anchor, model, MO_STR, "model that it trained"),
	MO_D(anchor, job, MO_INT, "number of the job that ran"),
	MO_D_SUB(anchor, measured, MO_STRUCT, &measured_desc, "what that job did"),
	MO_D(anchor, recipe_text, MO_STR, "as it was submitted"),
	MO_D_SUB(anchor, recipe, MO_STRUCT, &recipe_desc, "with what the planner chose"),
};
const struct mo_desc anchor_desc = MO_DESC(anchor, anchor_fields);

bool anchor_same_stack(const struct anchor *a, const struct anchor *b)
{
	return mo_streq(a->software, b->software) && mo_streq(a->gpu, b->gpu) &&
	       mo_streq(a->precision, b->precision) && mo_streq(a->model, b->model);
}

bool anchor_current(const struct state *s, const struct anchor *a)
{
	for (size_t i = s->n_anchors; i > 0; i--)
		if (anchor_same_stack(&s->anchors[i - 1], a))
			return mo_streq(s->anchors[i - 1].version, a->version);
	return true;
}
