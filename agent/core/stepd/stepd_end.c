/* See stepd_end.h. */
#include "agent/core/stepd/stepd_end.h"

#include <signal.h>

#include "lib/base/assert.h"

#define KILL_AGAIN_US 1000000      /* a tree that forks while it is killed; doubles */
#define KILL_AGAIN_MAX_US 16000000 /* of processes that cannot die */
#define STUCK_MAX 64               /* unkillable pids told of */

void stepd_release_ports(struct stepd_core *s, struct stepd_out *out)
{
	if (s->ports_held)
		stepd_effect(out, SX_RELEASE_PORTS);
	s->ports_held = false;
}

void stepd_go_gone(struct stepd_core *s, struct stepd_out *out, const char *text)
{
	mo_assert(s->state != GONE); /* NOTE_GONE is written once */
	stepd_release_ports(s, out);
	mo_assert(!s->ports_held);
	s->state = GONE;
	mo_str_set(&stepd_core_note(s, out, NOTE_GONE, NULL)->text, text);
	stepd_effect(out, SX_DONE);
}

void stepd_kill_tree(struct stepd_core *s, int64_t now, struct stepd_out *out)
{
	mo_assert(s->state != NEW && s->state != GONE);
	stepd_release_ports(s, out);
	s->state = DOWN;
	s->kill_again_us = KILL_AGAIN_US;
	s->kill_at = now + s->kill_again_us;
	stepd_effect(out, SX_KILL_TREE);
}

static const char *exit_cause(const struct stepd_core *s, const struct note *n)
{
	bool signalled = n->signal != MO_NONE && n->signal > 0;

	if (s->state == DOWN && n->signal == SIGKILL)
		return "killed";
	if (s->stopped)
		return "stopped";
	return signalled ? "signalled" : "exited";
}

static bool rank_exited(struct stepd_core *s, const struct note *fact, struct stepd_out *out)
{
	struct local_rank *r = stepd_core_rank_of(s, fact);

	if (!r || r->exited || r->failed)
		return false;
	r->exited = true;
	struct note *n = stepd_core_note(s, out, NOTE_EXIT, fact);
	if (n->pid == MO_NONE)
		n->pid = r->started ? r->pid : MO_NONE;
	if (!n->cause)
		n->cause = mo_strdup(exit_cause(s, n));
	n->iteration = r->progress
			       /* the last word of its progress: beats may not have carried it */
			       .iteration;
	s->n_ended++;
	mo_assert(s->n_ended <= s->n_ranks);
	return true;
}

/* What the ranks left behind is killed: nothing of it is of use any more. */
void stepd_on_exit_of_rank(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			   struct stepd_out *out)
{
	if (rank_exited(s, &e->note, out) && s->n_ended == s->n_ranks)
		stepd_kill_tree(s, now, out);
}

void stepd_on_exit_late(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out)
{
	rank_exited(s, &e->note, out);
}

static void tell_outside(struct stepd_core *s, const struct stepd_event *e, struct stepd_out *out)
{
	if (e->outside)
		mo_str_set(&stepd_core_note(s, out, NOTE_STOPPING, NULL)->text,
			   "its supervisor was told to end by its machine (SIGTERM: systemctl "
			   "stop, or a shutdown)");
}

static int64_t grace_end(const struct stepd_event *e, int64_t now)
{
	return e->grace_us > INT64_MAX - now ? INT64_MAX : now + MO_MAX(e->grace_us, 0);
}

void stepd_on_stop_early(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	tell_outside(s, e, out);
	stepd_go_gone(s, out, "stopped before any rank was started");
}

void stepd_on_stop_unforked(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out)
{
	tell_outside(s, e, out);
	stepd_kill_tree(s, now, out);
}

void stepd_on_stop(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		   struct stepd_out *out)
{
	tell_outside(s, e, out);
	s->state = STOPPING;
	s->stopped = true;
	s->kill_at = grace_end(e, now);
	stepd_effect(out, SX_SIGNAL_RANKS)->signal = e->signal > 0 ? e->signal : SIGTERM;
	mo_assert(s->kill_at >= now);
}

void stepd_on_stop_again(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	s->kill_at = MO_MIN(s->kill_at, grace_end(e, now));
	mo_assert(s->state == STOPPING && s->stopped);
}

void stepd_on_kill_early(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			 struct stepd_out *out)
{
	stepd_go_gone(s, out, "killed before any rank was started");
}

void stepd_on_kill(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		   struct stepd_out *out)
{
	stepd_kill_tree(s, now, out);
}

void stepd_on_empty(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct local_rank *r = &s->ranks[i];

		if (!r->started || r->exited)
			continue;
		r->exited = true;
		struct note *n = stepd_core_note(s, out, NOTE_EXIT, NULL);
		n->rank = r->progress.rank;
		n->pid = r->pid;
		n->cause = mo_strdup(
			"unknown"); /* the status went to nobody: reported rather than left out */
	}
	stepd_go_gone(s, out,
		      s->n_started ? "every process of the step was reaped"
				   : "no rank was started");
}

void stepd_on_stuck(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		    struct stepd_out *out)
{
	for (size_t i = 0; i < s->n_stuck; i++)
		if (s->stuck[i] == e->note.pid)
			return;
	if (s->n_stuck == STUCK_MAX)
		return;
	mo_ints_add(&s->stuck, &s->n_stuck, e->note.pid);
	stepd_core_note(s, out, NOTE_UNKILLABLE, &e->note);
	mo_assert(s->n_stuck <= STUCK_MAX);
}

void stepd_on_tick(struct stepd_core *s, const struct stepd_event *e, int64_t now,
		   struct stepd_out *out)
{
	if (s->pending && now >= s->sample_due)
		stepd_core_flush_sample(s, out);
}

void stepd_on_tick_stopping(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			    struct stepd_out *out)
{
	stepd_on_tick(s, e, now, out);
	if (now >= s->kill_at)
		stepd_kill_tree(s, now, out);
}

void stepd_on_tick_down(struct stepd_core *s, const struct stepd_event *e, int64_t now,
			struct stepd_out *out)
{
	stepd_on_tick(s, e, now, out);
	if (now < s->kill_at)
		return;
	s->kill_again_us = MO_MIN(s->kill_again_us * 2, KILL_AGAIN_MAX_US);
	s->kill_at = now + s->kill_again_us;
	stepd_effect(out, SX_KILL_TREE);
	mo_assert(s->kill_again_us <= KILL_AGAIN_MAX_US);
}
