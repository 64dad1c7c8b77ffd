/* The agent's decisions about the steps of its node. Called by moe-agent and by the simulator.
 *
 *   a launch:  command -> spool (durable) -> fence (durable) -> start stepd -> its notes are
 *              forwarded until acknowledged -> forget on order
 *   adoption:  spool entry found -> other boot: forgotten (the boot id is the proof)
 *                                -> lock held: stepd lives, wait for it; silent: hung, reported,
 *                                never killed
 *                                -> lock free, journal ends with gone: forward
 *                                -> lock free, journal begun: sweep, write the last notes, forward
 *                                -> lock free, journal empty: sweep, then start only if the
 *                                launch is repeated
 *
 * Invariants: nothing is started without a durable spool entry; an attempt at or below the fence
 * without its entry is never started; an entry goes only after its gone note was acknowledged
 * (or on a new boot); a refusal makes nothing durable. Everything is idempotent: commands are
 * repeated by the controller. */
#include "agent/core/agent/agent_core_state.h"
#include "agent/core/stepd/stepd_core.h"
#include "lib/base/assert.h"

#include <string.h>

/* above the beat: a held sync comes back after a beat at the latest */
#define ANSWER_SLACK_US 5000000LL
#define BACKOFF_MIN_US 100000
/* syncs in one second that follow each other without a pause: a restart takes five */
#define QUICK_PER_S 64
/* after those: while commands stay due every sync is answered at once, and that must not spin */
#define PACE_US 20000
/* a repeated stop or kill reaches the stepd again after this */
#define TELL_AGAIN_US 2000000
#define WRITE_AGAIN_US 5000000

struct agent_core *agent_core_new(const char *node, const char *boot_id, const char *instance)
{
	struct agent_core *s = mo_alloc(sizeof(*s));

	s->node = mo_strdup(node);
	s->boot_id = mo_strdup(boot_id);
	s->instance = mo_strdup(instance);
	s->backoff_us = BACKOFF_MIN_US;
	s->beat_us = MO_BEAT_MS * 1000LL;
	s->sync_due = INT64_MAX;
	s->jitter = 2166136261u;
	for (const char *p = instance; p && *p; p++)
		s->jitter = (s->jitter ^ (uint8_t)*p) * 16777619u;
	return s;
}

struct agent_core *agent_core_free(struct agent_core *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_steps; i++)
		agent_step_free(s->steps[i]);
	for (size_t i = 0; i < s->n_scans; i++)
		mo_desc_done(&scan_result_desc, &s->scans[i].result);
	free(s->steps);
	free(s->scans);
	free(s->fence);
	free(s->node);
	free(s->boot_id);
	free(s->instance);
	free(s);
	return NULL;
}

void agent_out_done(struct agent_out *out)
{
	for (size_t i = 0; i < out->n_effects; i++) {
		mo_desc_free(&command_desc, out->effects[i].command);
		mo_desc_free(&note_desc, out->effects[i].note);
	}
	free(out->effects);
	*out = (struct agent_out){ 0 };
}

struct agent_step *agent_core_find(const struct agent_core *s, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->job == job && s->steps[i]->attempt == attempt)
			return s->steps[i];
	return NULL;
}

struct agent_step *agent_core_add(struct agent_core *s, int64_t job, int64_t attempt,
				  const struct launch *l, enum agent_step_phase phase)
{
	struct agent_step **slot;

	mo_assert(!agent_core_find(s, job, attempt)); /* a step is launched once */
	slot = MO_GROW(s->steps, s->n_steps);
	*slot = agent_step_new(job, attempt, l);
	(*slot)->phase = phase;
	return *slot;
}

void agent_core_drop(struct agent_core *s, struct agent_step *e)
{
	mo_assert(s->n_steps > 0);
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i] == e) {
			memmove(&s->steps[i], &s->steps[i + 1],
				(s->n_steps - i - 1) * sizeof(*s->steps));
			s->n_steps--;
			break;
		}
	agent_step_free(e);
}

int64_t agent_core_through(const struct agent_core *s, int64_t job, int64_t attempt)
{
	const struct agent_step *e = agent_core_find(s, job, attempt);

	return e ? e->through : 0;
}

/* ---- one step's life ---- */

static void write_last_notes(struct agent_step *e, int64_t now, struct agent_out *out)
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
	mo_assert(e->phase == AS_FENCING); /* its fence is on disk */
	e->phase = AS_STARTING;
	e->never_started = false;
	agent_effect(out, AX_START, e->job, e->attempt);
}

/* Carries a wanted stop or kill to where the step is. */
void agent_step_order(struct agent_step *e, int64_t now, struct agent_out *out)
{
	if (!e->stop && !e->kill)
		return;
	if (e->phase == AS_IDLE)
		write_last_notes(e, now, out);
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
static void refuse_unstarted(struct agent_core *s, struct agent_step *e, const char *why,
			     int64_t now, struct agent_out *out)
{
	int64_t job = e->job, attempt = e->attempt;

	mo_assert(e->phase == AS_SPOOLING || e->phase == AS_FENCING);
	agent_core_drop(s, e);
	agent_core_save_fence(s, job, out);
	agent_effect(out, AX_FORGET, job, attempt);
	agent_core_refuse(s, job, attempt, "spool", why);
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
		refuse_unstarted(s, e, ev->text ? ev->text : "the spool entry could not be written",
				 now, out);
}

static void on_fence_done(struct agent_core *s, struct agent_step *e, const struct agent_event *ev,
			  int64_t now, struct agent_out *out)
{
	if (e->phase != AS_FENCING)
		return;
	if (!ev->ok) {
		refuse_unstarted(s, e, ev->text ? ev->text : "the fence could not be written", now,
				 out);
	} else if (e->stop || e->kill) {
		e->never_started = true;
		write_last_notes(e, now, out);
	} else {
		start(e, out);
	}
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
		write_last_notes(e, now, out);
	}
}

static void on_note(struct agent_core *s, struct agent_step *e, const struct note *n, int64_t now,
		    struct agent_out *out)
{
	int64_t before = e->written;

	if (e->phase == AS_REFUSED || e->phase == AS_SPOOLING)
		return;
	agent_step_note(e, n);
	if (e->written == before)
		return;
	if (e->phase == AS_IDLE || e->phase == AS_FENCING)
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

/* ---- start-up ---- */

static void on_spooled_step(struct agent_core *s, const struct agent_event *ev,
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

static void on_started(struct agent_core *s, int64_t now, struct agent_out *out)
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

/* ---- answers ---- */

static void on_ack(struct agent_core *s, const struct step_ack *a, struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, a->job, a->attempt);

	if (!e)
		return;
	e->known = a->known;
	agent_step_ack(e, a->through);
	if (e->phase != AS_REFUSED || (e->known && e->through < e->written))
		return;
	agent_core_drop(s, e);
}

/* The controller has what the sync carried. */
static void on_sync_taken(struct agent_core *s, const struct sync_reply *r)
{
	for (size_t i = 0; i < s->n_steps; i++)
		for (size_t k = 0; k < s->steps[i]->n_ranks; k++)
			s->steps[i]->ranks[k].acked = s->steps[i]->ranks[k].sent;
	/* The reply names every scan that is due: a result it does not ask for any more has
	 * arrived. */
	for (size_t i = s->n_scans; i-- > 0;) {
		bool due = false;
		for (size_t k = 0; k < r->n_commands; k++)
			due |= r->commands[k].kind == CMD_SCAN &&
			       r->commands[k].job == s->scans[i].job &&
			       r->commands[k].order == s->scans[i].order &&
			       r->commands[k].id == s->scans[i].id;
		s->scans[i].wanted = due;
		if (!due && s->scans[i].done)
			agent_core_drop_scan(s, i);
	}
}

static void next_sync(struct agent_core *s, int64_t now, struct agent_out *out)
{
	if (s->link != LINK_UP || !s->sync_out)
		return;
	s->sync_out = false;
	s->backoff_us = BACKOFF_MIN_US;
	if (now >= s->quick_since + 1000000) {
		s->quick_since = now;
		s->quick = 0;
	}
	s->sync_due = ++s->quick <= QUICK_PER_S ? now : s->sync_sent + PACE_US;
	if (s->sync_due <= now)
		agent_core_send_sync(s, now, out);
}

static void on_reply(struct agent_core *s, const struct agent_event *ev, int64_t now,
		     struct agent_out *out)
{
	const struct sync_reply *r = ev->reply;
	size_t n_before = s->n_steps;

	if (r->epoch >= s->epoch) {
		agent_core_learn_epoch(s, r->epoch, out);
		for (size_t i = 0; i < r->n_acks; i++)
			on_ack(s, &r->acks[i], out);
		n_before = s->n_steps;
	}
	for (size_t i = 0; i < r->n_commands; i++)
		agent_core_command(s, &r->commands[i], now, out);
	bool refused = s->n_steps > n_before && s->steps[s->n_steps - 1]->phase == AS_REFUSED;
	if (ev->ok) {
		if (r->epoch >= s->epoch)
			on_sync_taken(s, r);
		next_sync(s, now, out);
	} else {
		s->urgent_out = false;
		if (s->urgent_again && agent_core_has_urgent(s))
			agent_core_send_urgent(s, now, out);
	}
	if (refused && !s->sync_out)
		agent_core_send_urgent(s, now, out);
}

/* Only a controller that was restored from a backup knows less of a step than it has
 * acknowledged. */
static void rewind_step(struct agent_step *e, const struct step_ack *a, struct agent_out *out)
{
	bool readable = e->phase == AS_STARTING || e->phase == AS_UP || e->phase == AS_HUNG ||
			e->phase == AS_GONE;

	if (!readable || !a->known || a->through == MO_NONE || a->through >= e->through)
		return;
	mo_assert(e->through > a->through);
	agent_step_rewind(e, a->through);
	agent_effect(out, AX_REREAD, e->job, e->attempt);
}

static void rewind_all(struct agent_core *s, const struct agent_welcome *w, struct agent_out *out)
{
	if (s->epoch == 0 || w->epoch / MO_EPOCH_STARTS <= s->epoch / MO_EPOCH_STARTS)
		return;
	for (size_t i = 0; i < w->n_steps; i++) {
		struct agent_step *e = agent_core_find(s, w->steps[i].job, w->steps[i].attempt);

		if (e)
			rewind_step(e, &w->steps[i], out);
	}
}

static void on_welcome(struct agent_core *s, const struct agent_welcome *w, int64_t now,
		       struct agent_out *out)
{
	/* WAIT: late, but the next hello has not left */
	if (s->link != LINK_HELLO && s->link != LINK_WAIT)
		return;
	rewind_all(s, w, out);
	agent_core_learn_epoch(s, w->epoch, out);
	if (w->beat_ms > 0 && w->beat_ms <= 60000)
		s->beat_us = w->beat_ms * 1000;
	if (w->epoch >= s->epoch)
		for (size_t i = 0; i < w->n_steps; i++)
			on_ack(s, &w->steps[i], out);
	for (size_t i = 0; i < s->n_steps; i++)
		for (size_t k = 0; k < s->steps[i]->n_ranks; k++) {
			struct agent_step_rank *r = &s->steps[i]->ranks[k];
			int64_t rank = r->acked.rank;
			/* progress is not stored: a restarted controller hears all of it again */
			mo_desc_init(&rank_progress_desc, &r->acked);
			r->acked.rank = rank;
		}
	s->link = LINK_UP;
	s->hello_us = 0;
	s->urgent_out = s->urgent_again = false;
	agent_core_send_sync(s, now, out);
	mo_assert(s->sync_out && s->link == LINK_UP);
}

static void on_no_answer(struct agent_core *s, bool sync, int64_t now, struct agent_out *out)
{
	if (sync) {
		s->hello_us = 0;
		agent_core_lose_link(s, now);
	} else {
		/* the next sync carries it; another urgent note tries again */
		s->urgent_out = false;
	}
}

static void on_tick(struct agent_core *s, int64_t now, struct agent_out *out)
{
	if (s->link == LINK_WAIT && now >= s->link_at)
		agent_core_say_hello(s, now, out);
	else if (s->link == LINK_HELLO && now >= s->link_at)
		agent_core_hello_late(s, now);
	else if (s->sync_out && now >= s->sync_sent + s->beat_us + ANSWER_SLACK_US)
		agent_core_lose_link(s, now);
	if (s->urgent_out && now >= s->urgent_sent + ANSWER_SLACK_US)
		s->urgent_out = false;
	if (s->link == LINK_UP && now >= s->sync_due)
		agent_core_send_sync(s, now, out);
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->phase == AS_WRITING && now >= s->steps[i]->retry_at)
			write_last_notes(s->steps[i], now, out);
}

static void on_step_event(struct agent_core *s, const struct agent_event *ev, int64_t now,
			  struct agent_out *out)
{
	struct agent_step *e = agent_core_find(s, ev->job, ev->attempt);

	if (!e)
		return;
	switch (ev->type) {
	case AE_SPOOL_DONE: on_spool_done(s, e, ev, now, out); break;
	case AE_FENCE_DONE: on_fence_done(s, e, ev, now, out); break;
	case AE_STEPD_UP:
		if (e->phase == AS_STARTING || e->phase == AS_HUNG || e->phase == AS_IDLE ||
		    e->phase == AS_FENCING || e->phase == AS_UP) {
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
	case AE_PROGRESS: on_progress(e, ev->progress); break;
	}
}

void agent_core_decide(struct agent_core *s, const struct agent_event *e, int64_t now_us,
		       struct agent_out *out)
{
	assert(e->type >= 0 && e->type < _AE_N);
	switch (e->type) {
	case AE_SPOOLED_STEP: on_spooled_step(s, e, out); break;
	case AE_FENCE:
		s->epoch = MO_MAX(s->epoch, e->epoch);
		if (e->job > 0)
			agent_core_raise_fence(s, e->job, e->attempt);
		break;
	case AE_STARTED: on_started(s, now_us, out); break;
	case AE_WELCOME: on_welcome(s, e->welcome, now_us, out); break;
	case AE_REPLY: on_reply(s, e, now_us, out); break;
	case AE_SCANNED: agent_core_scanned(s, e->scan, now_us, out); break;
	case AE_CHECKED: agent_core_checked(s, now_us, out); break;
	case AE_NO_ANSWER: on_no_answer(s, e->ok, now_us, out); break;
	case AE_TICK: on_tick(s, now_us, out); break;
	default: on_step_event(s, e, now_us, out); break;
	}
}

int64_t agent_core_deadline(const struct agent_core *s)
{
	int64_t d = INT64_MAX;

	if (s->link == LINK_WAIT || s->link == LINK_HELLO)
		d = s->link_at;
	if (s->link == LINK_UP)
		d = s->sync_out ? s->sync_sent + s->beat_us + ANSWER_SLACK_US : s->sync_due;
	if (s->urgent_out)
		d = MO_MIN(d, s->urgent_sent + ANSWER_SLACK_US);
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->phase == AS_WRITING)
			d = MO_MIN(d, s->steps[i]->retry_at);
	return d;
}
