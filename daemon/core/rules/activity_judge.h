/* Which rank the others wait for, by what all of them do with processors and GPUs (means of
 * minutes, daemon/core/state/activity.h). Pure; called by straggler_activity.c. What these readings
 * can and cannot tell: docs/decisions/033-activity.md.
 *
 *   SIGN_PROCESSOR  it waits for a processor far longer than its peers, or wants one far more of
 *                   the time: a busy neighbour
 *   SIGN_IDLE       its GPU is idle far longer than those of its peers, which wait for it in
 *                   collectives and are busy so: its host is late, whatever the reason
 *   SIGN_WORK       the memory of its GPU moves far more, and the GPU takes more power: it is given
 *                   more to do
 *
 * No reading is believed alone: another one of the rank agrees, or the job became slower, and the
 * rank changed against its own past as no other did. */
#pragma once
#include "daemon/core/rules/straggler_judge.h"
#include "daemon/core/state/activity.h"

/* One rank: now, and while the job was as fast as it was; MO_NONE_F: not known. */
struct rank_acted {
	int64_t rank, stage;
	double now[_ACTIVITY_KIND_N], usual[_ACTIVITY_KIND_N];
};
struct activity_verdict {
	int sign;            /* enum straggler_sign */
	int kind;            /* enum activity_kind: what stands out */
	struct standout odd; /* by that; rank MO_NONE: nobody does */
	bool alone;          /* one source of it alone says so, beside the job's pace */
	double lost_pct;     /* that the job loses by it; MO_NONE_F: as much as it became slower */
	double median[_ACTIVITY_KIND_N]; /* of its peers; MO_NONE_F: not known */
};

/* slow: the job is slower than it was. */
struct activity_verdict activity_judge(const struct rank_acted *r, size_t n, bool slow);
/* A rank stands out among its peers by one reading, and no other agrees: something to look at,
 * never a verdict. kind, odd and median[kind] are set; odd.rank MO_NONE: none does. */
struct activity_verdict activity_hint(const struct rank_acted *r, size_t n);
/* What stood out of that rank does no more, as far as it is known. */
bool activity_over(const struct rank_acted *r, size_t n, int64_t rank, int sign);
