/* See agent_answers.h. */
#include "agent/core/agent/agent_answers.h"

#include "agent/core/agent/activity.h"
#include "agent/core/agent/agent_command.h"
#include "agent/core/agent/agent_fence.h"
#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/images.h"
#include "agent/core/agent/link.h"
#include "lib/base/assert.h"

/* syncs in one second that follow each other without a pause: a restart takes five */
#define QUICK_PER_S 64
#define SCAN_OLD_US (10 * 1000000LL)
/* after those: while commands stay due every sync is answered at once, and that must not spin */
#define PACE_US 20000

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
static void on_sync_taken(struct agent_core *s, const struct sync_reply *r, int64_t now,
			  struct agent_out *out)
{
	agent_core_images_due(s, r, out);
	agent_core_motion_due(s, r);
	agent_core_activity_due(s, now, out);
	for (size_t i = 0; i < s->n_steps; i++)
		for (size_t k = 0; k < s->steps[i]->n_ranks; k++) {
			struct agent_step_rank *rank = &s->steps[i]->ranks[k];

			rank->acked = rank->sent;
			rank->activity.acked = rank->activity.sent;
		}
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

void agent_core_on_reply(struct agent_core *s, const struct agent_event *ev, int64_t now,
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
			on_sync_taken(s, r, now, out);
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
	bool has_journal = e->phase >= AS_STARTING && e->phase <= AS_GONE;

	if (!has_journal || !a->known || a->through == MO_NONE || a->through >= e->through)
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

/* What was seen of checkpoint.dir before the controller was out of reach need not lie there now,
 * and counts from when it is heard: it is looked at again when that is ordered again. What still
 * looks is as old as scan_deadline at most. */
static void drop_old_scans(struct agent_core *s, int64_t now)
{
	for (size_t i = s->n_scans; i-- > 0;)
		if (s->scans[i].done && s->scans[i].order == ORDER_SCAN &&
		    now - s->scans[i].began > SCAN_OLD_US)
			agent_core_drop_scan(s, i);
}

void agent_core_on_welcome(struct agent_core *s, const struct agent_welcome *w, int64_t now,
			   struct agent_out *out)
{
	/* WAIT: late, but the next hello has not left */
	if (s->link != LINK_HELLO && s->link != LINK_WAIT)
		return;
	rewind_all(s, w, out);
	drop_old_scans(s, now);
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
	s->recorder = w->recorder;
	s->activity = w->activity;
	s->link = LINK_UP;
	s->hello_us = 0;
	s->urgent_out = s->urgent_again = false;
	agent_core_send_sync(s, now, out);
	mo_assert(s->sync_out && s->link == LINK_UP);
}

void agent_core_on_no_answer(struct agent_core *s, const struct agent_event *e, int64_t now)
{
	if (e->ok) {
		s->hello_us = 0;
		agent_core_lose_link(s, now, e->after_us);
	} else {
		/* the next sync carries it; another urgent note tries again */
		s->urgent_out = false;
	}
}
