/* See step_effect.h. */
#include "agent/step_effect.h"

#include <string.h>

#include "agent/activity.h"
#include "agent/messages.h"
#include "agent/motion.h"
#include "agent/queue.h"
#include "agent/recorder.h"
#include "agent/release.h"
#include "agent/start.h"
#include "agent/step_entry.h"
#include "agent/step_talk.h"
#include "agent/sweep.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

static struct mo_log_where where(const struct manager *m, const struct agent_effect *x)
{
	return (struct mo_log_where){
		.job = x->job, .attempt = x->attempt, .rank = -1, .node = m->config->node
	};
}

static void spool(struct manager *m, const struct agent_effect *x)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct mo_log_where w = where(m, x);
	struct step_dir *d = step_dir_find(m, x->job, x->attempt);

	if (!d)
		d = step_dir_new(m, x->job, x->attempt);
	d->held = true;
	int r = step_entry_write(d, x->command, &err);
	char *why = r < 0 ? mo_strdup(mo_error_text(&err, r)) : NULL;

	if (r < 0)
		mo_log(MO_ERR, NULL, &w, "%s", why);
	queue_event(m, &(struct agent_event){ .type = AE_SPOOL_DONE,
					      .job = x->job,
					      .attempt = x->attempt,
					      .ok = r == 0,
					      .text = why });
}

static void write_note(struct manager *m, struct step_dir *d, struct note *n)
{
	struct mo_log_where w = {
		.job = d->job, .attempt = d->attempt, .rank = -1, .node = m->config->node
	};
	if (n->time == MO_NONE)
		n->time = mo_clock_wall_us();
	if (n->mono_ns == MO_NONE)
		n->mono_ns = mo_clock_mono_ns();
	int r = n->n > d->journal.last ? journal_append(&d->journal, n) : 0;
	if (r < 0)
		mo_log(MO_ERR, NULL, &w, "%s: the journal cannot be continued: %s; trying again",
		       d->path, strerror(-r));
	step_dir_read(d);
}

void step_effect(struct manager *m, struct agent_effect *x)
{
	struct step_dir *d = step_dir_find(m, x->job, x->attempt);
	struct mo_log_where w = where(m, x);

	if (x->type == AX_SPOOL)
		spool(m, x);
	if (!d)
		return;
	switch (x->type) {
	case AX_RELEASE: release_ask(m->releases, d); break;
	case AX_START:
		mo_log(MO_NOTICE, MSG_STEP_START, &w,
		       "starting step j-%lld attempt %lld with %zu ranks", (long long)x->job,
		       (long long)x->attempt, d->n_exited);
		step_start(d);
		break;
	case AX_STOP:
		mo_log(d->stop_logged ? MO_DEBUG : MO_NOTICE, MSG_STEP_STOP, &w,
		       "stopping step j-%lld attempt %lld: signal %lld, grace %lld ms",
		       (long long)x->job, (long long)x->attempt, (long long)x->signal,
		       (long long)x->grace_us / 1000);
		d->stop_logged = true;
		step_talk_order(d, &(struct stepd_order){ .cmd = (char *)"stop",
							  .exec = MO_NONE,
							  .signal = x->signal,
							  .grace_us = x->grace_us });
		break;
	case AX_KILL:
		mo_log(d->kill_logged ? MO_DEBUG : MO_NOTICE, MSG_STEP_STOP, &w,
		       "killing step j-%lld attempt %lld", (long long)x->job,
		       (long long)x->attempt);
		d->kill_logged = true;
		step_talk_order(d, &(struct stepd_order){ .cmd = (char *)"kill",
							  .exec = MO_NONE,
							  .signal = MO_NONE,
							  .grace_us = MO_NONE });
		break;
	case AX_SWEEP: step_sweep(d); break;
	case AX_WRITE_NOTE: write_note(m, d, x->note); break;
	case AX_REREAD: step_dir_reread(d); break;
	case AX_MOTION: motion_look(d); break;
	case AX_RECORDER: recorder_ask(d); break;
	case AX_ACTIVITY: activity_look(d); break;
	case AX_FORGET: step_dir_forget(d); break;
	}
}
