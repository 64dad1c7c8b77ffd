/* The GPU-second ledger: every change of a job first charges gpus x (now - ledger_at) to the
 * category of the phase before, in whole GPU-microseconds, so that the categories add up to the
 * total exactly. While a job trains the category is open until it is known what the time bought:
 * a first pass of iterations (productive), a repeated one (recompute), or nothing (the rule that
 * ended it says what). Called by update.c and its parts only. */
#include "daemon/core/update/ledger.h"

#include "daemon/core/state/progress.h"
#include "lib/base/assert.h"

void ledger_charge_as(struct job *j, int64_t time, int category)
{
	assert(category >= 0 && category < _GPU_CATEGORY_N);
	if (job_state_final(j->state) || time <= j->ledger_at)
		return;
	j->ledger[category] += job_gpus(j) * (time - j->ledger_at);
	j->ledger_at = time;
}

/* Iterations from+1 .. to were done since ledger_at; those up to the watermark for the second
 * time. */
void ledger_charge_train(struct job *j, int64_t time, int64_t from, int64_t to)
{
	int64_t total = job_gpus(j) * MO_MAX(0, time - j->ledger_at), again;

	if (job_state_final(j->state) || to <= from || j->progress.watermark == MO_NONE ||
	    j->progress.watermark <= from) {
		ledger_charge_as(j, time, GPU_PRODUCTIVE);
		return;
	}
	again = (int64_t)((__int128)total * (MO_MIN(j->progress.watermark, to) - from) /
			  (to - from));
	mo_assert(again >= 0 && again <= total);
	j->ledger[GPU_RECOMPUTE] += again;
	j->ledger[GPU_PRODUCTIVE] += total - again;
	j->ledger_at = MO_MAX(j->ledger_at, time);
}

void ledger_charge(struct job *j, int64_t time)
{
	int category = ledger_category(j);
	int64_t next = (j->progress.iteration != MO_NONE ? j->progress.iteration
							 : MO_MAX(j->run.resume, 0)) +
		       1;

	if (category < 0)
		category = next > j->progress.watermark ? GPU_PRODUCTIVE : GPU_RECOMPUTE;
	ledger_charge_as(j, time, category);
}
