/* See gpu_work.h. The limits lie far from what was measured on two H200 (docs/measured.md): a rank
 * that trains or computes alone has 74 to 94 % busy, 20 to 28 % memory, 661 to 705 of 700 W; one
 * that waits in a collective 100, 0 and 120; an idle one 0, 0 and 118. What lies between computes.
 */
#include "agent/core/health/gpu_work.h"

#include "lib/base/desc.h"
#include "lib/base/util.h"

#define SPINS_PERCENT 95 /* so busy at least */
#define RESTS_PERCENT 1  /* at most */
#define STILL_PERCENT 1  /* memory; at most */
/* A kernel that computes in registers and caches touches no memory, but draws power: more than this
 * part of the most that the job drew. */
#define POWER_SHARE 3
/* A GPU is read every 5 seconds, by a helper that has 5 more: it may have computed in between. */
#define LATE_US (15 * 1000000LL)

void gpu_work_begin(struct gpu_work *w)
{
	*w = (struct gpu_work){ .read_at = MO_NONE, .worked_at = MO_NONE, .spins_since = MO_NONE };
}

void gpu_work_take(struct gpu_work *w, double busy, double memory, double power, int64_t now)
{
	bool known = busy != MO_NONE_F && memory != MO_NONE_F && power != MO_NONE_F,
	     unseen = !known || w->read_at == MO_NONE || now - w->read_at > LATE_US, still, spins,
	     rests;

	if (unseen && w->worked_at != MO_NONE)
		w->worked_at = now;
	if (unseen)
		w->spins_since = MO_NONE;
	w->read_at = known ? now : MO_NONE;
	if (!known)
		return;
	w->power_most = MO_MAX(w->power_most, power);
	still = memory <= STILL_PERCENT;
	spins = still && busy >= SPINS_PERCENT && power * POWER_SHARE <= w->power_most;
	rests = still && busy <= RESTS_PERCENT;
	w->memory |= !still;
	if (!spins && !rests && w->memory)
		w->worked_at = now;
	w->spins_since = !spins ? MO_NONE : w->spins_since == MO_NONE ? now : w->spins_since;
}
