/* See agent_life.h. */
#include "agent/core/agent/agent_life.h"

#include "agent/core/agent/agent_fence.h"
#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/link.h"
#include "agent/core/stepd/stepd_core.h"
#include "lib/base/assert.h"

/* a repeated stop or kill reaches the stepd again after this */
#define TELL_AGAIN_US 2000000
#define WRITE_AGAIN_US 5000000

void agent_step_write_last(struct agent_step *e, int64_t now, struct agent_out *out)
{
	struct note *notes = NULL;
	size_t n = 0;

	e->phase = AS_WRITING;
	e->retry_at = now + WRITE_AGAIN_US;
	agent_step_last_notes(e, &notes, &n);
	for (size_t i = 0; i < n; i++)
		agent_effect(out, AX_WRITE_NOTE, e->job, e->attempt)->note =
			mo_desc_dup(&note_desc, &notes[i]);
	mo_vec_clear(&note_desc, (void **)&notes, &n);
}

static void sweep(struct agent_step *e, struct agent_out *out)
{
	mo_assert(!e->gone);
	e->phase = AS_SWEEPING;
	agent_effect(out, AX_SWEEP, e->job, e->attempt);
}

static void start(struct agent_step *e, struct agent_out *out)
{
	mo_assert(e->phase == AS_FENCING || e->phase == AS_HELD); /* its fence is on disk */
	e->phase = AS_STARTING;
	e->never_started = false;
	agent_effect(out, AX_START, e->job, e->attempt);
}

/* Carries a wanted stop or kill to where the step is. */
void agent_step_order(struct agent_step *e, int64_t now, struct agent_out *out)
{
	if (!e->stop && !e->kill)
		return;
	if (e->phase == AS_HELD)
		e->never_started = true;
	if (e->phase == AS_IDLE || e->phase == AS_HELD)
		agent_step_write_last(e, now, out);
	if (e->phase != AS_UP || (e->ordered_at != MO_NONE && now < e->ordered_at + TELL_AGAIN_US))
		return;
	e->ordered_at = now;
	if (e->kill) {
		agent_effect(out, AX_KILL, e->job, e->attempt);
		return;
	}
	struct agent_effect *x = agent_effect(out, AX_STOP, e->job, e->attempt);
	x->signal = e->signal;
	x->grace_us = e->grace_us;
}

/* Nothing was started, and nothing will be: neither now nor by a late copy of the order. What is
 * on disk of it goes before that is reported: a restarted agent would take it for a step that waits
 * for its start. */
static void refuse_unstarted(struct agent_core *s, struct agent_step *e, const char *cause,
			     const char *why, int64_t now, struct agent_out *out)
{
	int64_t job = e->job, attempt = e->attempt;

	mo_assert(e->phase == AS_SPOOLING || e->phase == AS_FENCING || e->phase == AS_HELD);
	agent_core_drop(s, e);
	agent_core_save_fence(s, job, out);
	agent_effect(out, AX_FORGET, job, attempt);
	agent_core_refuse(s, job, attempt, cause, why);
	agent_core_send_urgent(s, now, out);
}

void agent_core_start_fenced(struct agent_core *s, struct agent_step *e, struct agent_out *out)
{
	mo_assert(e->phase == AS_SPOOLING || e->phase == AS_IDLE);
	e->phase = AS_FENCING;
	/* its own attempt, by which the answer finds it: the job's fence may stand higher
	 * meanwhile */
	agent_effect(out, AX_FENCE, e->job, e->attempt)->epoch = s->epoch;
}

static void on_spool_done(struct agent_core *s, struct agent_step *e, const struct agent_event *ev,
			  int64_t now, struct agent_out *out)
{
	if (e->phase != AS_SPOOLING)
		return;
	if (ev->ok)
		agent_core_start_fenced(s, e, out);
	else
		refuse_unstarted(s, e, "spool",
				 ev->text ? ev->text : "the spool entry could not be written", now,
				 out);
}

static void on_fence_done(struct agent_core *s, struct agent_step *e, const struct agent_event *ev,
			  int64_t now, struct agent_out *out)
{
	if (e->phase != AS_FENCING)
		return;
	if (!ev->ok) {
		refuse_unstarted(s, e, "spool",
				 ev->text ? ev->text : "the fence could not be written", now, out);
	} else if (e->stop || e->kill) {
		e->never_started = true;
		agent_step_write_last(e, now, out);
	} else if (e->has_gpus) {
		e->phase = AS_HELD;
		agent_effect(out, AX_RELEASE, e->job, e->attempt);
	} else {
		start(e, out);
	}
}

static void on_held(struct agent_step *e, const struct agent_event *ev)
{
	if (e->phase == AS_HELD)
		mo_str_set(&e->waits, ev->text);
}

static void on_released(struct agent_core *s, struct agent_step *e, const struct agent_event *ev,
			int64_t now, struct agent_out *out)
{
	if (e->phase != AS_HELD)
		return;
	if (ev->ok)
		start(e, out);
	else
		refuse_unstarted(s, e, LAUNCH_GPU_HELD, ev->text, now, out);
}

static void on_stepd_lost(struct agent_step *e, const struct agent_event *ev, struct agent_out *out)
{
	if (e->phase == AS_STARTING || e->phase == AS_UP || e->phase == AS_HUNG) {
		mo_str_set(&e->text, ev->text);
		sweep(e, out);
	}
}

static void on_swept(struct agent_step *e, int64_t now, struct agent_out *out)
{
	if (e->phase != AS_SWEEPING)
		return;
	if (e->never_started && !e->written) {
		e->phase = AS_IDLE;
		agent_step_order(e, now, out);
	} else {
		agent_step_write_last(e, now, out);
	}
}

static void on_note(struct agent_core *s, struct agent_step *e, const struct note *n, int64_t now,
		    struct agent_out *out)
{
	int64_t before = e->read;

	if (e->phase == AS_REFUSED || e->phase == AS_SPOOLING)
		return;
	agent_step_note(e, n);
	if (e->read == before)
		return;
	if (e->phase == AS_IDLE || e->phase == AS_FENCING || e->phase == AS_HELD)
		/* a stepd of before the agent's restart came up after all */
		e->phase = AS_STARTING;
	if (e->gone)
		e->phase = AS_GONE;
	if (n->n > e->through && note_urgent(n))
		agent_core_send_urgent(s, now, out);
}

static void on_progress(struct agent_step *e, const struct rank_progress *p)
{
	int64_t i = p->rank == MO_NONE ? -1 : p->rank - e->first_rank;

	if (i >= 0 && (size_t)i < e->n_ranks)
		mo_desc_copy(&rank_progress_desc, &e->ranks[i].now, p);
}

void agent_core_on_spooled(struct agent_core *s, const struct agent_event *ev,
			   struct agent_out *out)
{
	if (s->link != LINK_OFF || agent_core_find(s, ev->job, ev->attempt))
		return;
	agent_core_raise_fence(s, ev->job, ev->attempt);
	if (!ev->boot_same) {
		agent_core_save_fence(s, ev->job, out);
		agent_effect(out, AX_FORGET, ev->job, ev->attempt);
		return;
	}
	struct agent_step *e = agent_core_add(s, ev->job, ev->attempt, ev->launch, AS_STARTING);
	e->never_started = !ev->lock_held; /* until its first note is read */
}

void agent_core_on_started(struct agent_core *s, int64_t now, struct agent_out *out)
{
	if (s->link != LINK_OFF)
		return;
	for (size_t i = 0; i < s->n_steps; i++) {
		struct agent_step *e = s->steps[i];
		bool lock_free = e->never_started;

		e->never_started = lock_free && !e->written;
		agent_core_save_fence(s, e->job,
				      out); /* the agent may have died between spool and fence */
		if (lock_free && e->phase != AS_GONE)
			sweep(e, out);
	}
	agent_core_say_hello(s, now, out);
}

void agent_core_on_step(struct agent_core *s, const struct agent_event *ev, int64_t now,
			struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, ev->job, ev->attempt);

	if (!e)
		return;
	switch (ev->type) {
	case AE_SPOOL_DONE: on_spool_done(s, e, ev, now, out); break;
	case AE_FENCE_DONE: on_fence_done(s, e, ev, now, out); break;
	case AE_HELD: on_held(e, ev); break;
	case AE_RELEASED: on_released(s, e, ev, now, out); break;
	case AE_STEPD_UP:
		if (e->phase == AS_STARTING || e->phase == AS_HUNG || e->phase == AS_IDLE ||
		    e->phase == AS_FENCING || e->phase == AS_HELD || e->phase == AS_UP) {
			e->phase = AS_UP;
			e->ordered_at = MO_NONE;
			agent_step_order(e, now, out);
		}
		break;
	case AE_STEPD_LOST: on_stepd_lost(e, ev, out); break;
	case AE_STEPD_SILENT:
		if (e->phase == AS_STARTING || e->phase == AS_UP)
			e->phase = AS_HUNG;
		break;
	case AE_SWEPT: on_swept(e, now, out); break;
	case AE_NOTE: on_note(s, e, ev->note, now, out); break;
	case AE_REREAD: agent_step_reread(e); break;
	case AE_PROGRESS: on_progress(e, ev->progress); break;
	case AE_RECORDER: agent_step_recorder(e, ev->recorder); break;
	case AE_MOTION: agent_step_motion(e, ev, now); break;
	case AE_ACTIVITY: agent_step_activity(e, ev, now); break;
	}
}
