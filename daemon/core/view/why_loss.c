/* See why_loss.h. */
#include "daemon/core/view/why_loss.h"

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/numbers.h"
#include "daemon/core/view/why_reason.h"

#define SHOWN_MAX 20 /* checkpoints that are named in one answer */

void why_tainted(const struct job *j, struct why_view *w)
{
	for (size_t i = j->n_checkpoints, n = 0; i > 0 && n < SHOWN_MAX; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (!checkpoint_tainted(c))
			continue;
		n++;
		why_evidence(why_reason(w, "checkpoint-tainted",
					"checkpoint %lld is tainted, and not resumed from",
					(long long)c->iteration),
			     "%s", c->tainted);
	}
}

void why_loss(const struct job *j, struct why_view *w)
{
	const struct numbers *n = j->progress.numbers;
	_cleanup_(mo_freep) char *text = NULL;
	struct why_reason *r;

	if (!numbers_bad(j) || n->attempt != j->attempt)
		return;
	text = numbers_text(j);
	r = why_reason(w, "loss", "%s", text);
	why_evidence(r, "%lld in a row; the last good one was of iteration %lld", (long long)n->row,
		     (long long)n->good);
	if (!n->trusted)
		why_evidence(r, "or the engine prints none: no checkpoint is tainted, and nothing "
				"follows");
	else if (numbers_only_told(j))
		why_evidence(r,
			     "it was submitted to a version before, so the job does not go back "
			     "by itself: 'moectl restart j-%lld --from ITER' does",
			     (long long)j->id);
	else if (n->kind == NUMBER_NAN)
		why_evidence(r, "after %d in a row the job goes back to a checkpoint of before",
			     NUMBERS_NAN_STAYS);
	else if (numbers_goes_back(j))
		why_evidence(r, "after %d in a row the job goes back to a checkpoint of before",
			     NUMBERS_SPIKE_STAYS);
	else
		why_evidence(r,
			     "recovery.loss_spike does not say that the job goes back: after "
			     "%d in a row it counts as how high the loss is",
			     NUMBERS_LEVEL);
}
