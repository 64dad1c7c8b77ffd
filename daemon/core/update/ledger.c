/* The GPU-second ledger: every change of a job first charges gpus x (now - ledger_at) to the
 * category of the phase before, in whole GPU-microseconds, so that the categories add up to the
 * total exactly. While a job trains the category is open until it is known what the time bought:
 * a first pass of iterations (productive), a repeated one (recompute), or nothing (the rule that
 * ended it says what). Of that time only so much is open as iterations explain (progress.h): what
 * goes beyond it is GPU_HANG whether the job goes on at last or not. Called by update.c and its
 * parts only. */
#include "daemon/core/update/ledger.h"

#include "daemon/core/state/progress.h"
#include "lib/base/assert.h"

/* Marks are at most so far from each other, or a twelfth of their age: the last hour is known to
 * five minutes, a day to two hours, 90 days of running are some 150 marks. */
#define MARK_US (300 * 1000000LL)
#define MARK_SHARE 12
#define MARKS_KEPT_US (3600 * 1000000LL) /* of a job that is over, before its end */

/* Those between two others that are near enough to each other by now. The first, which is the
 * submit, stays. */
static void thin_marks(struct job *j)
{
	for (size_t i = j->n_ledger_marks; i-- > 2;) {
		const struct ledger_mark *m = j->ledger_marks;
		int64_t age = j->ledger_at - m[i].at;

		if (m[i].at - m[i - 2].at <= MO_MAX(MARK_US, age / MARK_SHARE))
			mo_vec_remove(&ledger_mark_desc, j->ledger_marks, &j->n_ledger_marks,
				      i - 1);
	}
}

/* Before the ledger moves on. Those of a version before say nothing, and go. */
static void mark(struct job *j)
{
	while (j->n_ledger_marks && !j->ledger_marks[0].n_us)
		mo_vec_remove(&ledger_mark_desc, j->ledger_marks, &j->n_ledger_marks, 0);
	size_t n = j->n_ledger_marks;

	if (n > 0 && j->ledger_at < j->ledger_marks[n - 1].at + MARK_US)
		return;
	struct ledger_mark *m = MO_ADD(j, ledger_marks, &ledger_mark_desc);
	m->at = j->ledger_at;
	for (size_t i = 0; i < j->n_ledger; i++)
		mo_ints_add(&m->us, &m->n_us, j->ledger[i]);
	thin_marks(j);
}

void ledger_ends(struct job *j)
{
	while (j->n_ledger_marks > 1 && j->ledger_marks[1].at < j->ledger_at - MARKS_KEPT_US)
		mo_vec_remove(&ledger_mark_desc, j->ledger_marks, &j->n_ledger_marks, 1);
}

void ledger_charge_as(struct job *j, int64_t time, int category)
{
	assert(category >= 0 && category < _GPU_CATEGORY_N);
	if (job_state_final(j->state) || time <= j->ledger_at)
		return;
	mark(j);
	j->ledger[category] += job_gpus(j) * (time - j->ledger_at);
	j->ledger_at = time;
}

/* Of the time since ledger_at what goes beyond `explained`; the rest stays to be charged. */
static void charge_beyond(struct job *j, int64_t time, int64_t explained, int category)
{
	if (time > j->ledger_at && time - j->ledger_at > explained)
		ledger_charge_as(j, time - explained, category);
}

/* Those up to the watermark for the second time. */
void ledger_charge_train(struct job *j, int64_t time, int64_t from, int64_t to, int64_t explained)
{
	charge_beyond(j, time, explained, GPU_HANG);
	int64_t total = job_gpus(j) * MO_MAX(0, time - j->ledger_at), again;

	if (job_state_final(j->state) || to <= from || j->progress.watermark == MO_NONE ||
	    j->progress.watermark <= from) {
		ledger_charge_as(j, time, GPU_PRODUCTIVE);
		return;
	}
	again = (int64_t)((__int128)total * (MO_MIN(j->progress.watermark, to) - from) /
			  (to - from));
	mo_assert(again >= 0 && again <= total);
	mark(j);
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

	if (category < 0) {
		charge_beyond(j, time, progress_explains_us(j, 1), GPU_HANG);
		category = next > j->progress.watermark ? GPU_PRODUCTIVE : GPU_RECOMPUTE;
	}
	ledger_charge_as(j, time, category);
}

void ledger_charge_failed(struct job *j, int64_t time)
{
	int category = ledger_category(j);

	if (category < 0)
		charge_beyond(j, time, progress_explains_us(j, 1), GPU_HANG);
	ledger_charge_as(j, time, category < 0 ? GPU_DETECT : category);
}

void ledger_charge_saved(struct job *j, int64_t time)
{
	if (ledger_category(j) < 0)
		charge_beyond(j, time, progress_explains_us(j, 1), GPU_SAVE);
}
