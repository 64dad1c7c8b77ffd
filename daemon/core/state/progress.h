/* What a job's samples and phase say of its way: how long an iteration takes, and what the time
 * that passes now is spent on. Pure readers, called by updates, rules and views. */
#pragma once
#include "daemon/core/state/state.h"

#define SAMPLES_RECENT 16 /* newest samples that stand for what is so now */

/* Recent time of an iteration: the median of the newest samples of the newest attempt that has
 * any; 0 unknown. */
int64_t samples_step_us(const struct job *j);
/* An iteration moves on within this many times the recent one: a collection of garbage, a slow read
 * or a busy link cost less, and who looks at a job that stands longer calls it standing; */
#define STALL_STEPS 3
#define STALL_MIN_US (10 * 1000000LL) /* and within this, which hides a beat or two */
/* So long may n iterations take before the job counts as standing. */
int64_t progress_limit_us(const struct job *j, int64_t n);
/* The same of the time that a ledger takes for training, after the last iteration or the last
 * change of the phase; INT64_MAX: nobody knows how long, as of the first iteration of an attempt,
 * which compiles, and of an evaluation. */
int64_t progress_explains_us(const struct job *j, int64_t n);
/* What of a ledger the job had GPUs for: not the time in the queue, nor that of a pause. */
int64_t ledger_held(const int64_t *ledger);
/* What the ledger had until a moment: by the newest mark that is not younger, else by the first,
 * GPU-microseconds of each category. Returns when that was, us; the submit and zeros where a
 * version before marks took the job. */
int64_t ledger_until(const struct job *j, int64_t moment, int64_t ret[_GPU_CATEGORY_N]);
/* enum ledger_category, -1 = training: open until it is known what the time bought. */
int ledger_category(const struct job *j);
