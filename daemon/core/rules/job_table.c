/* See job_table.h. */
#include "daemon/core/rules/job_table.h"

#include "lib/base/assert.h"
#include "lib/base/util.h"

const char *const job_trigger_names[_TRIGGER_N] = {
	"placed", "up",      "first iteration", "failed",  "node down",  "node back",
	"retry",  "give up", "completed",       "stopped", "time limit", "drain",
	"cancel", "pause",   "resume",          "restart",
};
const char *const job_guard_names[_GUARD_N] = {
	"always",
	"some step lives",
	"launched, not failed",
	"iterates or never did",
	"all started",
	"to cancel",
	"to pause",
	"to run again",
	"out of time",
	"not to cancel",
};

#define ROW(s, t, g, n) \
	{ \
		JOB_##s, t, G_##g, n, NULL \
	}
#define IGNORE(s, t) \
	{ \
		JOB_##s, t, G_ALWAYS, NEXT_IGNORE, NULL \
	}
#define REFUSE(s, t, why) \
	{ \
		JOB_##s, t, G_ALWAYS, NEXT_REFUSE, why \
	}
#define FINAL(s, why) \
	IGNORE(s, T_PLACED), IGNORE(s, T_UP), IGNORE(s, T_ITERATION), IGNORE(s, T_FAILED), \
		IGNORE(s, T_NODE_DOWN), IGNORE(s, T_NODE_BACK), IGNORE(s, T_RETRY), \
		IGNORE(s, T_GIVE_UP), IGNORE(s, T_COMPLETED), IGNORE(s, T_STOPPED), \
		IGNORE(s, T_TIME_LIMIT), IGNORE(s, T_DRAIN), REFUSE(s, V_CANCEL, why), \
		REFUSE(s, V_PAUSE, why), REFUSE(s, V_RESUME, why)
#define LAUNCHED(s) \
	IGNORE(s, T_PLACED), IGNORE(s, T_ITERATION), ROW(s, T_FAILED, ALWAYS, JOB_RECOVERING), \
		ROW(s, T_NODE_DOWN, ALWAYS, JOB_RECOVERING), IGNORE(s, T_NODE_BACK), \
		IGNORE(s, T_RETRY), ROW(s, T_GIVE_UP, ALWAYS, JOB_FAILED), \
		ROW(s, T_COMPLETED, ALWAYS, JOB_COMPLETED), IGNORE(s, T_STOPPED), \
		ROW(s, T_TIME_LIMIT, ALWAYS, JOB_STOPPING), ROW(s, T_DRAIN, ALWAYS, JOB_STOPPING), \
		ROW(s, V_CANCEL, ALWAYS, JOB_STOPPING), ROW(s, V_PAUSE, ALWAYS, JOB_STOPPING), \
		REFUSE(s, V_RESUME, "it is not paused"), ROW(s, V_RESTART, ALWAYS, JOB_STOPPING)

const struct job_row job_rows[] = {
	ROW(QUEUED, T_PLACED, ALWAYS, JOB_STARTING),
	IGNORE(QUEUED, T_UP),
	IGNORE(QUEUED, T_ITERATION),
	IGNORE(QUEUED, T_FAILED),
	IGNORE(QUEUED, T_NODE_DOWN),
	IGNORE(QUEUED, T_NODE_BACK),
	IGNORE(QUEUED, T_RETRY),
	ROW(QUEUED, T_GIVE_UP, ALWAYS, JOB_FAILED),
	IGNORE(QUEUED, T_COMPLETED),
	IGNORE(QUEUED, T_STOPPED),
	IGNORE(QUEUED, T_TIME_LIMIT),
	IGNORE(QUEUED, T_DRAIN),
	ROW(QUEUED, V_CANCEL, ALWAYS, JOB_CANCELLED),
	ROW(QUEUED, V_PAUSE, ALWAYS, JOB_PAUSED),
	REFUSE(QUEUED, V_RESUME, "it is not paused"),
	ROW(QUEUED, V_RESTART, ALWAYS, JOB_QUEUED),

	ROW(STARTING, T_UP, ALWAYS, JOB_RUNNING),
	LAUNCHED(STARTING),
	IGNORE(RUNNING, T_UP),
	LAUNCHED(RUNNING),

	ROW(RECOVERING, T_PLACED, ALWAYS, JOB_RECOVERING),
	ROW(RECOVERING, T_UP, STARTED, JOB_RUNNING),
	IGNORE(RECOVERING, T_UP),
	ROW(RECOVERING, T_ITERATION, FIRST, JOB_RUNNING),
	IGNORE(RECOVERING, T_ITERATION),
	ROW(RECOVERING, T_FAILED, ALWAYS, JOB_RECOVERING),
	ROW(RECOVERING, T_NODE_DOWN, ALWAYS, JOB_RECOVERING),
	ROW(RECOVERING, T_NODE_BACK, STARTED, JOB_RUNNING),
	IGNORE(RECOVERING, T_NODE_BACK),
	ROW(RECOVERING, T_RETRY, ALWAYS, JOB_RECOVERING),
	ROW(RECOVERING, T_GIVE_UP, ALWAYS, JOB_FAILED),
	ROW(RECOVERING, T_COMPLETED, ALWAYS, JOB_COMPLETED),
	IGNORE(RECOVERING, T_STOPPED),
	ROW(RECOVERING, T_TIME_LIMIT, LIVE, JOB_STOPPING),
	ROW(RECOVERING, T_TIME_LIMIT, ALWAYS, JOB_FAILED),
	ROW(RECOVERING, T_DRAIN, HEALTHY, JOB_STOPPING),
	IGNORE(RECOVERING, T_DRAIN),
	ROW(RECOVERING, V_CANCEL, LIVE, JOB_STOPPING),
	ROW(RECOVERING, V_CANCEL, ALWAYS, JOB_CANCELLED),
	ROW(RECOVERING, V_PAUSE, LIVE, JOB_STOPPING),
	ROW(RECOVERING, V_PAUSE, ALWAYS, JOB_PAUSED),
	REFUSE(RECOVERING, V_RESUME, "it is not paused"),
	ROW(RECOVERING, V_RESTART, LIVE, JOB_STOPPING),
	ROW(RECOVERING, V_RESTART, ALWAYS, JOB_RECOVERING),

	IGNORE(STOPPING, T_PLACED),
	IGNORE(STOPPING, T_UP),
	IGNORE(STOPPING, T_ITERATION),
	IGNORE(STOPPING, T_FAILED),
	IGNORE(STOPPING, T_NODE_DOWN),
	IGNORE(STOPPING, T_NODE_BACK),
	IGNORE(STOPPING, T_RETRY),
	IGNORE(STOPPING, T_GIVE_UP),
	ROW(STOPPING, T_COMPLETED, NOT_CANCEL, JOB_COMPLETED),
	IGNORE(STOPPING, T_COMPLETED),
	ROW(STOPPING, T_STOPPED, CANCEL, JOB_CANCELLED),
	ROW(STOPPING, T_STOPPED, PAUSE, JOB_PAUSED),
	ROW(STOPPING, T_STOPPED, AGAIN, JOB_QUEUED),
	ROW(STOPPING, T_STOPPED, TIME, JOB_FAILED),
	IGNORE(STOPPING, T_TIME_LIMIT),
	IGNORE(STOPPING, T_DRAIN),
	ROW(STOPPING, V_CANCEL, ALWAYS, JOB_STOPPING),
	ROW(STOPPING, V_PAUSE, PAUSE, JOB_STOPPING),
	ROW(STOPPING, V_PAUSE, AGAIN, JOB_STOPPING),
	REFUSE(STOPPING, V_PAUSE, "it is being stopped for good"),
	REFUSE(STOPPING, V_RESUME, "it is still stopping; wait until it is paused"),
	ROW(STOPPING, V_RESTART, AGAIN, JOB_STOPPING),
	REFUSE(STOPPING, V_RESTART, "it is being stopped"),

	IGNORE(PAUSED, T_PLACED),
	IGNORE(PAUSED, T_UP),
	IGNORE(PAUSED, T_ITERATION),
	IGNORE(PAUSED, T_FAILED),
	IGNORE(PAUSED, T_NODE_DOWN),
	IGNORE(PAUSED, T_NODE_BACK),
	IGNORE(PAUSED, T_RETRY),
	IGNORE(PAUSED, T_GIVE_UP),
	IGNORE(PAUSED, T_COMPLETED),
	IGNORE(PAUSED, T_STOPPED),
	IGNORE(PAUSED, T_TIME_LIMIT),
	IGNORE(PAUSED, T_DRAIN),
	ROW(PAUSED, V_CANCEL, ALWAYS, JOB_CANCELLED),
	REFUSE(PAUSED, V_PAUSE, "it is paused already"),
	ROW(PAUSED, V_RESUME, ALWAYS, JOB_QUEUED),
	REFUSE(PAUSED, V_RESTART, "it is paused; say 'moectl resume' first"),

	FINAL(COMPLETED, "it is completed; 'moectl restart JOB --from N' trains again from there"),
	ROW(COMPLETED, V_RESTART, ALWAYS, JOB_QUEUED),
	FINAL(FAILED, "it has failed; 'moectl restart JOB' runs it again"),
	ROW(FAILED, V_RESTART, ALWAYS, JOB_QUEUED),
	FINAL(CANCELLED, "it is cancelled; a cancelled job never starts again"),
	REFUSE(CANCELLED, V_RESTART,
	       "it is cancelled; a cancelled job never starts again: submit it again, it resumes "
	       "from what lies in its checkpoint.dir"),
};
const size_t n_job_rows = ELEMENTSOF(job_rows);

bool job_guard_holds(const struct job *j, int guard)
{
	bool first = !j->failure.decided && !j->failure.waiting_node && j->run.n_places > 0 &&
		     (j->progress.iteration != MO_NONE || j->progress.watermark == MO_NONE);

	switch (guard) {
	case G_ALWAYS: return true;
	case G_LIVE: return job_live(j);
	case G_HEALTHY: return !j->failure.decided && j->run.n_places > 0;
	case G_FIRST: return first;
	case G_STARTED: return first && j->counts.started == (int64_t)j->run.n_places;
	case G_CANCEL: return j->intent == INTENT_CANCEL;
	case G_PAUSE: return j->intent == INTENT_PAUSE;
	case G_AGAIN: return j->intent == INTENT_RESTART || j->intent == INTENT_DRAIN;
	case G_TIME: return j->intent == INTENT_TIME_LIMIT;
	case G_NOT_CANCEL: return j->intent != INTENT_CANCEL;
	default: return false;
	}
}

const struct job_row *job_row_find(const struct job *j, int trigger)
{
	mo_assert(j->state >= 0 && j->state < _JOB_STATE_N && trigger >= 0 && trigger < _TRIGGER_N);
	for (size_t i = 0; i < n_job_rows; i++)
		if (job_rows[i].state == j->state && job_rows[i].trigger == trigger &&
		    job_guard_holds(j, job_rows[i].guard))
			return &job_rows[i];
	assert(!"a state x trigger pair without a row");
	return NULL;
}
