/* The controller's clocks: what the wall clock says may be hours ahead, with or without a time
 * service that vouches for it, and is corrected later. */
#include "tests/sim/moed.h"

#include <stdlib.h>

#include "daemon/core/state/clock.h"
#include "daemon/manager.h"

int64_t wall_now(const struct sim *s)
{
	return WALL_US + s->now + s->ctl.wall_ahead;
}

/* A wall clock that is little ahead of the one that the state was written by cannot be told from a
 * longer absence: jobs are charged for it. */
static void away_longer(struct sim *s, int64_t us)
{
	for (int i = 0; i < JOBS_MAX && us > 0; i++) {
		s->jobs[i].submitted -= us;
		s->jobs[i].started -= s->jobs[i].started ? us : 0;
	}
}

/* What it will make of its clocks. */
void wall_start(struct sim *s, bool other_machine)
{
	const struct state *st = core_state(s->ctl.shadow);
	struct clock_word w;
	char id[32];

	if (other_machine) {
		s->ctl.boot++;
		s->ctl.boot_at = s->now;
	}
	snprintf(id, sizeof(id), "controller-boot-%lld", (long long)s->ctl.boot);
	/* A wrong time that is vouched for cannot be told from a long absence when the stored time
	 * is another boot's. */
	if (!mo_streq(st->clock_boot_id, id))
		s->ctl.synced = s->ctl.synced && s->ctl.wall_ahead == 0;
	struct clock_reading r = {
		.wall = wall_now(s), .boot = moed_boot_us(s), .boot_id = id, .synced = s->ctl.synced
	};
	clock_at_start(st, &r, &w);
	s->ctl.blurred |= w.verdict != CLOCK_RIGHT; /* the time that it was away may count or not */
	if (w.verdict == CLOCK_RIGHT && s->ctl.skew)
		away_longer(s, w.now - s->now - s->ctl.skew);
	s->fault_counts[F_CLOCK_MOVED] += w.verdict == CLOCK_MOVED;
	s->fault_counts[F_CLOCK_HELD] += w.verdict == CLOCK_HELD;
	s->ctl.held = w.verdict == CLOCK_HELD;
	s->ctl.skew = w.now - s->now;
	free(w.text);
}

void wall_look(struct sim *s)
{
	const struct mo_coretime *t = &moed()->time;
	int64_t skew = t->base_us - t->boot0_us + moed_boot_us(s) - s->now;

	s->fault_counts[F_CLOCK_MOVED] += skew != s->ctl.skew;
	s->fault_counts[F_CLOCK_HELD] += moed()->clock_reported && !s->ctl.held;
	s->ctl.held = moed()->clock_reported;
	s->ctl.skew = skew;
}

/* By more than what a controller takes for the time that it was down, also against the clock of
 * before: it may have gone on from that one. */
void wall_ahead(struct sim *s)
{
	int64_t before = s->ctl.wall_was;

	do
		s->ctl.wall_ahead = sim_between(s, 70 * S, 12 * 3600 * S);
	while (before && llabs(s->ctl.wall_ahead - before) < 70 * S);
	s->ctl.wall_was = s->ctl.wall_ahead;
	s->ctl.synced = sim_chance(s, 0.5);
}

void wall_set(struct sim *s)
{
	s->ctl.wall_ahead = 0;
	s->ctl.synced = sim_chance(s, 0.8);
}

int64_t wall_stored_at(const struct sim *s)
{
	return s->now == s->ctl.up_since ? s->ctl.down_since : s->now;
}

/* Nothing of a wrong clock is charged to a job, nor ends it. */
void wall_check(struct sim *s, const struct record *r)
{
	struct truth *t = r->job != MO_NONE ? sim_job(s, r->job) : NULL;
	const struct job *j = t ? job_find(core_state(s->ctl.shadow), r->job) : NULL;

	if (r->type == REC_SUBMIT)
		t->submitted = wall_stored_at(s);
	if (!j)
		return;
	if (j->started_at == MO_NONE)
		t->started = 0;
	else if (!t->started) /* of the last turn before an upgrade the state alone is seen */
		t->started = r->type == REC_PLACE ? wall_stored_at(s) : s->ctl.down_since;
	if (r->type == REC_INTENT && r->intent->intent == INTENT_TIME_LIMIT &&
	    s->now - t->started < j->spec.recipe.time_limit_us - 2 * S)
		sim_violation(s, "j-%lld reaches its time limit after %lld s of %lld",
			      (long long)j->id, (long long)((s->now - t->started) / S),
			      (long long)(j->spec.recipe.time_limit_us / S));
	if (r->type == REC_JOB && job_state_final(j->state) &&
	    job_age(j, j->ended_at) > s->now - t->submitted + 2 * S)
		sim_violation(s, "j-%lld is charged for %lld s, it took %lld s", (long long)j->id,
			      (long long)(job_age(j, j->ended_at) / S),
			      (long long)((s->now - t->submitted) / S));
}
