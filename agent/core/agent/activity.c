/* See activity.h. */
#include "agent/core/agent/activity.h"

#include "agent/core/agent/agent_core_state.h"
#include "agent/core/agent/link.h"

/* of a window that the agent could not end in time, and of its readings */
#define LONGEST 2
#define LEAST_SHARE 2 /* a GPU was read for a half of it */

static double growth_pct(int64_t last, int64_t now, int64_t passed)
{
	if (last == MO_NONE || now == MO_NONE || now < last)
		return MO_NONE_F;
	return 100.0 * (double)(now - last) / (double)passed;
}

static double mean(const struct activity_sum *last, const struct activity_sum *now, int64_t passed)
{
	int64_t us = now->us - last->us;

	return us >= passed / LEAST_SHARE ? (now->sum - last->sum) / (double)us : MO_NONE_F;
}

void activity_take(struct activity_marks *m, const struct activity_reading *r, int64_t now)
{
	const struct activity_reading *last = &m->last;
	int64_t passed = now - m->at;

	if (m->at && last->pid == r->pid && passed >= ACTIVITY_WINDOW_US / LONGEST &&
	    passed <= ACTIVITY_WINDOW_US * LONGEST)
		m->now = (struct rank_activity){
			.rank = r->rank,
			.window = m->now.window + 1,
			.cpu_pct = growth_pct(last->cpu_us, r->cpu_us, passed),
			.delay_pct = growth_pct(last->delay_us, r->delay_us, passed),
			.busy_pct = mean(&last->gpu[ACTIVITY_BUSY], &r->gpu[ACTIVITY_BUSY], passed),
			.mem_pct = mean(&last->gpu[ACTIVITY_MEM], &r->gpu[ACTIVITY_MEM], passed),
			.power_w =
				mean(&last->gpu[ACTIVITY_POWER], &r->gpu[ACTIVITY_POWER], passed),
		};
	m->last = *r;
	m->at = now;
}

bool activity_untold(const struct activity_marks *m)
{
	return m->now.window > m->acked;
}

struct rank_activity activity_tell(struct activity_marks *m)
{
	m->sent = m->now.window;
	return m->now;
}

void agent_core_activity_due(struct agent_core *s, int64_t now, struct agent_out *out)
{
	if (!s->activity || (s->activity_at && now - s->activity_at < ACTIVITY_WINDOW_US))
		return;
	s->activity_at = now;
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->phase == AS_UP)
			agent_effect(out, AX_ACTIVITY, s->steps[i]->job, s->steps[i]->attempt);
}

void agent_step_activity(struct agent_step *e, const struct agent_event *ev, int64_t now)
{
	for (size_t i = 0; i < ev->n_activities; i++) {
		int64_t at = ev->activities[i].rank - e->first_rank;

		if (at >= 0 && (size_t)at < e->n_ranks)
			activity_take(&e->ranks[at].activity, &ev->activities[i], now);
	}
}
