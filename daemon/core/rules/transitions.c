/* See transitions.h. */
#include "daemon/core/rules/transitions.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

/* That a job is starting is announced by job.started, which names the places. */
static enum event_type event_of(int state)
{
	static const enum event_type types[_JOB_STATE_N] = {
		[JOB_QUEUED] = EVENT_JOB_QUEUED,       [JOB_STARTING] = EVENT_JOB_STARTED,
		[JOB_RUNNING] = EVENT_JOB_RUNNING,     [JOB_RECOVERING] = EVENT_JOB_RECOVERING,
		[JOB_STOPPING] = EVENT_JOB_STOPPING,   [JOB_PAUSED] = EVENT_JOB_PAUSED,
		[JOB_COMPLETED] = EVENT_JOB_COMPLETED, [JOB_FAILED] = EVENT_JOB_FAILED,
		[JOB_CANCELLED] = EVENT_JOB_CANCELLED,
	};

	mo_assert(state >= 0 && state < _JOB_STATE_N);
	return types[state];
}

static void move(struct turn *t, int64_t id, int trigger, const struct rec_job *how,
		 const char *reason)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct job_row *row = job_row_find(j, trigger);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *why = mo_strdup(reason);
	int before = j->state;
	struct record r;

	assert(row->next >= 0);
	record_init(&r, REC_JOB);
	r.job = id;
	r.transition->state = row->next;
	r.transition->reason = mo_strdup(why);
	r.transition->attempt_over = how->attempt_over;
	r.transition->follows = how->follows;
	r.transition->pause_us = how->pause_us;
	turn_emit(t, &r);
	mo_assert((int)j->state == row->next);
	if (row->next == before || row->next == JOB_STARTING)
		return;
	data_str(&b, "from", job_state_names[before]);
	data_str(&b, "to", job_state_names[row->next]);
	data_str(&b, "reason", why);
	event_emit(t, event_of(row->next), id, NULL, MO_NONE, j->attempt > 0 ? j->attempt : MO_NONE,
		   data_end(&b), "%s %s%s%s", j->spec.recipe.name,
		   row->next == JOB_QUEUED ? "is queued again" : job_state_names[row->next],
		   why ? ": " : "", why ? why : "");
}

void job_move(struct turn *t, int64_t id, int trigger, bool over, int follows, const char *reason)
{
	move(t, id, trigger,
	     &(struct rec_job){ .attempt_over = over, .follows = follows, .pause_us = MO_NONE },
	     reason);
}

void job_retry(struct turn *t, int64_t id, int64_t pause_us, const char *reason)
{
	move(t, id, T_RETRY,
	     &(struct rec_job){ .attempt_over = true,
				.follows = FOLLOWS_FAILURE,
				.pause_us = pause_us > 0 ? pause_us : MO_NONE },
	     reason);
}

void job_reason(struct turn *t, int64_t id, const char *reason, bool image)
{
	const struct job *j = job_find(&t->core->state, id);
	struct record r;

	record_init(&r, REC_JOB);
	r.job = id;
	r.transition->state = j->state;
	r.transition->reason = mo_strdup(reason);
	r.transition->follows = FOLLOWS_NOTHING;
	r.transition->image = image;
	turn_emit(t, &r);
}

void job_intent(struct turn *t, int64_t id, int intent, bool now, int64_t from)
{
	struct record r;

	mo_assert(intent >= 0 && intent < _INTENT_N);
	record_init(&r, REC_INTENT);
	r.job = id;
	r.intent->intent = intent;
	r.intent->now = now;
	r.intent->restart_from = from;
	turn_emit(t, &r);
}
