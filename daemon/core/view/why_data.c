/* See why_data.h. */
#include "daemon/core/view/why_data.h"

#include "daemon/core/state/data_order.h"
#include "daemon/core/view/why_reason.h"

void why_skips(const struct job *j, struct why_view *w)
{
	struct why_reason *r =
		j->n_skips ? why_reason(w, "data-skipped",
					"its attempts leave out data at which the loss went bad: "
					"%zu of at most %lld windows (recovery.loss_spike.skip)",
					j->n_skips, (long long)j->spec.recipe.skips)
			   : NULL;

	for (size_t i = 0; i < j->n_skips; i++)
		why_evidence(r, "iterations %lld to %lld, after attempt %lld",
			     (long long)j->skips[i].first, (long long)j->skips[i].last,
			     (long long)j->skips[i].attempt);
}

void why_data_order(const struct job *j, struct why_view *w)
{
	const struct data_order *o = j->progress.data_order;

	/* that they go on, or that nothing is known of them, is no reason of anything */
	if (o && o->attempt == j->attempt && data_order_moved(o))
		why_reason(w, "data-moved", "%s", o->text);
}
