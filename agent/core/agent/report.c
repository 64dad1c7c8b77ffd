/* What the agent sends: hello, sync, urgent. Called by the shell when agent_core_decide asked for
 * it. */
#include "agent/core/agent/agent_core_state.h"
#include "agent/core/agent/agent_steps.h"
#include "agent/core/agent/images.h"
#include "agent/core/agent/link.h"
#include "agent/core/stepd/stepd_core.h"
#include "lib/base/assert.h"
#include "lib/base/desc_fit.h"

/* what a note, or a found checkpoint, costs without its texts: daemon/core/rules/intake.c */
#define NOTE_BYTES 512

/* All texts that a note has or will have, as they are written: a controller that must refuse a
 * message is sent it again for ever. */
static size_t note_bytes(const struct note *n)
{
	return NOTE_BYTES + mo_desc_text_bytes(&note_desc, n);
}

static struct step_report *add_report(const struct agent_step *e, struct step_report **steps,
				      size_t *n)
{
	struct step_report *r = mo_vec_add(&step_report_desc, (void **)steps, n);

	mo_assert(e->written >= 0);
	r->job = e->job;
	r->attempt = e->attempt;
	r->state = agent_step_state(e);
	r->written = e->written;
	return r;
}

/* Copies up to n_max notes, as many as fit into *bytes. The first of a message always fits. */
static void add_notes(const struct agent_step *e, size_t n_max, size_t *count, size_t *bytes,
		      struct step_report *r)
{
	mo_assert(n_max <= e->n_notes);
	for (size_t i = 0; i < n_max && *count < MO_NOTES_PER_SYNC; i++) {
		size_t size = note_bytes(&e->notes[i]);
		if (*count && *bytes + size > MO_PORTION_BYTES)
			return;
		mo_desc_copy(&note_desc, MO_ADD(r, notes, &note_desc), &e->notes[i]);
		*bytes += size;
		++*count;
	}
}

/* true: it is in the message, where the first always fits. */
static bool add_scan(const struct scan *scan, size_t *bytes, struct agent_sync *ret)
{
	const struct scan_result *r = &scan->result;
	size_t size = NOTE_BYTES * (1 + r->n_items + r->n_unread) +
		      mo_desc_text_bytes(&scan_result_desc, r);

	mo_assert(scan->done);
	if (ret->n_scans && *bytes + size > MO_PORTION_BYTES)
		return false;
	mo_desc_copy(&scan_result_desc, MO_ADD(ret, scans, &scan_result_desc), r);
	*bytes += size;
	return true;
}

static void head(const struct agent_core *s, struct agent_sync *ret)
{
	mo_str_set(&ret->node, s->node);
	mo_str_set(&ret->boot_id, s->boot_id);
	mo_str_set(&ret->instance, s->instance);
	ret->epoch = s->epoch;
	ret->beat = s->beat;
}

void agent_core_hello(const struct agent_core *s, struct agent_hello *ret)
{
	mo_str_set(&ret->node, s->node);
	mo_str_set(&ret->boot_id, s->boot_id);
	mo_str_set(&ret->instance, s->instance);
	ret->protocol = MO_PROTOCOL;
	for (size_t i = 0; i < s->n_steps; i++)
		add_report(s->steps[i], &ret->steps, &ret->n_steps);
}

void agent_core_sync(struct agent_core *s, struct agent_sync *ret)
{
	size_t count = 0, bytes = 0;

	s->beat++;
	s->checked = false; /* syncs carry health until it is acknowledged */
	head(s, ret);
	for (size_t k = 0; k < s->n_steps; k++) {
		/* Another step begins each time, so that one with many notes cannot starve the
		 * rest. */
		struct agent_step *e = s->steps[(k + (size_t)s->beat) % s->n_steps];
		struct step_report *r = add_report(e, &ret->steps, &ret->n_steps);

		if (e->phase == AS_HELD)
			mo_str_set(&r->waits, e->waits);
		add_notes(e, e->n_notes, &count, &bytes, r);
		for (size_t i = 0; i < e->n_ranks; i++) {
			struct agent_step_rank *rank = &e->ranks[i];
			rank->sent = rank->now;
			if (!mo_desc_equal(&rank_progress_desc, &rank->now, &rank->acked))
				mo_desc_copy(&rank_progress_desc,
					     MO_ADD(r, progress, &rank_progress_desc), &rank->now);
			struct rank_motion motion;
			if (!rank->exited && motion_tell(&rank->motion, rank->now.rank, &motion))
				*MO_ADD(r, motion, &rank_motion_desc) = motion;
			if (s->activity && !rank->exited && activity_untold(&rank->activity))
				*MO_ADD(r, activity, &rank_activity_desc) =
					activity_tell(&rank->activity);
		}
		for (size_t i = 0; s->recorder && i < e->recorder.n_ranks; i++)
			mo_desc_copy(&rank_recorder_desc, MO_ADD(r, recorder, &rank_recorder_desc),
				     &e->recorder.ranks[i]);
		e->recorder_sent = s->recorder;
	}
	bytes = 0; /* of scans; another one begins each time, here too */
	for (size_t k = 0; k < s->n_scans; k++) {
		const struct scan *scan = &s->scans[(k + (size_t)s->beat) % s->n_scans];

		if (scan->done && !add_scan(scan, &bytes, ret))
			break;
	}
	agent_core_images_report(s, ret);
}

bool agent_core_urgent(struct agent_core *s, struct agent_sync *ret)
{
	size_t count = 0, bytes = 0;

	head(s, ret);
	for (size_t k = 0; k < s->n_steps; k++) {
		struct agent_step *e = s->steps[k];
		size_t n = e->n_notes;

		while (n && !note_urgent(&e->notes[n - 1]))
			n--;
		if (n)
			add_notes(e, n, &count, &bytes, add_report(e, &ret->steps, &ret->n_steps));
	}
	bytes = 0;
	for (size_t i = 0; i < s->n_scans; i++)
		if (s->scans[i].done && !s->scans[i].sent)
			s->scans[i].sent = add_scan(&s->scans[i], &bytes, ret);
	bool checked = s->checked || agent_core_images_urgent(s);
	s->checked = false;
	agent_core_images_report(s, ret);
	return count > 0 || ret->n_scans > 0 || checked;
}

struct rank_progress *agent_core_progress(const struct agent_core *s, int64_t job, int64_t attempt,
					  size_t *ret_n)
{
	const struct agent_step *e = agent_core_find(s, job, attempt);
	struct rank_progress *all = mo_alloc_array(e ? e->n_ranks + 1 : 1, sizeof(*all));

	*ret_n = 0;
	for (size_t i = 0; e && i < e->n_ranks; i++)
		if (e->ranks[i].started && !e->ranks[i].exited)
			all[(*ret_n)++] = e->ranks[i].now;
	return all;
}
