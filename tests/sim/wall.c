/* The controller's clocks, and moed's shell around them: what the wall clock says may be hours
 * ahead, with or without a time service that vouches for it, and is corrected later. */
#include "tests/sim/sim.h"

#include <stdlib.h>

#include "daemon/core/state/clock.h"

int64_t wall_core(const struct sim *s)
{
	return s->now + s->ctl.skew;
}

static struct clock_reading reading(const struct sim *s, char id[static 32])
{
	snprintf(id, 32, "controller-boot-%lld", (long long)s->ctl.boot);
	return (struct clock_reading){ .wall = s->now + s->ctl.wall_ahead,
				       .boot = s->now - s->ctl.boot_at,
				       .boot_id = id,
				       .synced = s->ctl.synced };
}

/* Holds from now on; the next turn begins with it. */
static void take(struct sim *s, const struct clock_word *w)
{
	sim_trace(s, "controller: %s", w->text ? w->text : "the clock is right");
	s->fault_counts[F_CLOCK_MOVED] += w->verdict == CLOCK_MOVED;
	s->fault_counts[F_CLOCK_HELD] += w->verdict == CLOCK_HELD;
	s->ctl.clock_reported |= w->verdict == CLOCK_HELD;
	s->ctl.skew = w->now - s->now;
	s->ctl.clock_due = true;
	s->ctl.clock_shift += w->shift;
	free(s->ctl.clock_text);
	s->ctl.clock_text = w->text;
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

void wall_start(struct sim *s, bool other_machine)
{
	struct clock_word w;
	char id[32];

	if (other_machine) {
		s->ctl.boot++;
		s->ctl.boot_at = s->now;
	}
	s->ctl.clock_reported = s->ctl.clock_due = false;
	s->ctl.clock_shift = 0;
	struct clock_reading r = reading(s, id);
	/* A wrong time that is vouched for cannot be told from a long absence when the stored time
	 * is another boot's. */
	if (!mo_streq(core_state(s->ctl.core)->clock_boot_id, r.boot_id))
		r.synced = s->ctl.synced = s->ctl.synced && s->ctl.wall_ahead == 0;
	clock_at_start(core_state(s->ctl.core), &r, &w);
	s->ctl.blurred |= w.verdict != CLOCK_RIGHT; /* the time that it was away may count or not */
	if (w.verdict == CLOCK_RIGHT)
		away_longer(s, w.now - s->now - s->ctl.skew);
	take(s, &w);
}

/* true: a turn is due. */
bool wall_pulse(struct sim *s)
{
	struct clock_word w;
	char id[32];
	struct clock_reading r = reading(s, id);

	clock_in_run(wall_core(s), &r, &w);
	if (w.verdict != CLOCK_MOVED && (w.verdict != CLOCK_HELD || s->ctl.clock_reported)) {
		free(w.text);
		return false;
	}
	take(s, &w);
	return true;
}

void wall_step(struct sim *s, struct core_out *out)
{
	char id[32];
	struct clock_reading r = reading(s, id);

	if (!s->ctl.clock_due)
		return;
	core_decide(s->ctl.core,
		    &(struct core_input){
			    .type = IN_CLOCK,
			    .clock = &(struct in_clock){ .boot_id = id,
							 .boottime_us = r.boot,
							 .synced = r.synced,
							 .shift_us = s->ctl.clock_shift,
							 .told = s->ctl.clock_text } },
		    wall_core(s), out);
	s->ctl.clock_due = false;
	s->ctl.clock_shift = 0;
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

/* Nothing of a wrong clock is charged to a job, nor ends it. */
void wall_check(struct sim *s, const struct record *r)
{
	struct truth *t = r->job != MO_NONE ? sim_job(s, r->job) : NULL;
	const struct job *j = t ? job_find(core_state(s->ctl.shadow), r->job) : NULL;

	if (r->type == REC_SUBMIT)
		t->submitted = s->now;
	if (!j)
		return;
	if (j->started_at == MO_NONE)
		t->started = 0;
	else if (!t->started)
		t->started = s->now;
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
