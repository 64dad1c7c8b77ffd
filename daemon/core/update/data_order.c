/* See data_order.h. */
#include "daemon/core/update/data_order.h"

void data_order_sample(struct job *j, size_t at)
{
	const struct data_order *o = j->progress.data_order;
	struct data_order *next;

	if (o && o->attempt == j->attempt &&
	    (o->consumed != MO_NONE || j->progress.samples[at].consumed_samples == MO_NONE))
		return;
	next = mo_desc_new(&data_order_desc);
	if (!data_order_judge(j, at, next)) {
		mo_desc_free(&data_order_desc, next);
		return;
	}
	mo_desc_free(&data_order_desc, j->progress.data_order);
	j->progress.data_order = next;
}
