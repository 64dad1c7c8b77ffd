/* See anchor.h. */
#include "daemon/core/state/anchor.h"

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
