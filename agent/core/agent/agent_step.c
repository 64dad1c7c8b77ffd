/* One step as the agent knows it. Called by agent_core.c and report.c. Invariant: `notes` are
 * exactly the journal's lines above `through`, in order, except samples thinned out during a long
 * absence of the controller. */
#include "agent/core/agent/agent_step.h"

#include <string.h>

#include "lib/base/assert.h"

struct agent_step *agent_step_new(int64_t job, int64_t attempt, const struct launch *l)
{
	struct agent_step *e = mo_alloc(sizeof(*e));

	mo_assert(job > 0 || !l);
	e->job = job;
	e->attempt = attempt;
	e->known = true;
	e->ordered_at = MO_NONE;
	e->has_gpus = l && l->n_gpus > 0;
	if (!l || l->n_local <= 0 || l->n_local > MO_GPUS_PER_NODE_MAX)
		return e;
	e->first_rank = l->first_rank;
	e->n_ranks = (size_t)l->n_local;
	e->ranks = mo_alloc_array(e->n_ranks, sizeof(*e->ranks));
	for (size_t i = 0; i < e->n_ranks; i++) {
		struct agent_step_rank *r = &e->ranks[i];
		mo_desc_init(&rank_progress_desc, &r->now);
		r->now.rank = e->first_rank + (int64_t)i;
		r->sent = r->acked = r->now;
		r->pid = MO_NONE;
	}
	return e;
}

struct agent_step *agent_step_free(struct agent_step *e)
{
	if (!e)
		return NULL;
	mo_vec_clear(&note_desc, (void **)&e->notes, &e->n_notes);
	mo_desc_done(&recorder_answer_desc, &e->recorder);
	free(e->ranks);
	free(e->text);
	free(e->waits);
	free(e);
	return NULL;
}

static void thin_out(struct agent_step *e)
{
	size_t retained = 0, half = e->n_notes / 2;
	bool drop = false;

	for (size_t i = 0; i < e->n_notes; i++) {
		if (i < half && e->notes[i].kind == NOTE_SAMPLE && (drop = !drop)) {
			mo_desc_done(&note_desc, &e->notes[i]);
			continue;
		}
		if (retained != i)
			memcpy(&e->notes[retained], &e->notes[i], sizeof(*e->notes));
		retained++;
	}
	e->n_notes = retained;
	mo_assert(retained <= STEP_NOTES_MAX);
}

static void remember(struct agent_step *e, const struct note *n)
{
	struct agent_step_rank *r = NULL;
	int64_t i = n->rank == MO_NONE ? -1 : n->rank - e->first_rank;

	mo_assert(n->n == e->read);
	if (i >= 0 && (size_t)i < e->n_ranks)
		r = &e->ranks[i];
	switch (n->kind) {
	case NOTE_STARTED:
		if (r) {
			r->started = true;
			r->pid = n->pid;
		}
		break;
	case NOTE_EXIT:
		if (r)
			r->exited = true;
		break;
	case NOTE_RUNNING: e->running = true; break;
	case NOTE_REFUSED: e->refused = true; break;
	case NOTE_LOST: e->lost = true; break;
	case NOTE_GONE: e->gone = true; break;
	}
}

void agent_step_note(struct agent_step *e, const struct note *n)
{
	if (e->rereading || n->n <= e->read || e->gone)
		return;
	if (e->read == 0 && n->n > 1) {
		e->trimmed = true; /* only acknowledged segments are ever deleted */
		e->through = MO_MAX(e->through, n->n - 1);
	}
	e->read = n->n;
	e->written = MO_MAX(e->written, n->n);
	remember(e, n);
	if (n->n <= e->through)
		return;
	mo_assert(e->n_notes == 0 || e->notes[e->n_notes - 1].n < n->n);
	struct note *copy = mo_vec_add(&note_desc, (void **)&e->notes, &e->n_notes);
	mo_desc_copy(&note_desc, copy, n);
	if (e->n_notes > STEP_NOTES_MAX)
		thin_out(e);
}

void agent_step_ack(struct agent_step *e, int64_t through)
{
	size_t n = 0;

	if (through == MO_NONE || through <= e->through)
		return;
	e->through = through;
	while (n < e->n_notes && e->notes[n].n <= through)
		mo_desc_done(&note_desc, &e->notes[n++]);
	if (n)
		memmove(e->notes, e->notes + n, (e->n_notes - n) * sizeof(*e->notes));
	e->n_notes -= n;
	mo_assert(e->n_notes == 0 || e->notes[0].n > e->through);
}

void agent_step_rewind(struct agent_step *e, int64_t through)
{
	mo_assert(through < e->through);
	mo_vec_clear(&note_desc, (void **)&e->notes, &e->n_notes);
	e->through = through;
	e->read = 0;
	e->rereading = true;
	e->gone = false;
}

void agent_step_reread(struct agent_step *e)
{
	e->rereading = false;
}

static struct note *add(const struct agent_step *e, int kind, struct note **notes, size_t *n_notes)
{
	int64_t n = *n_notes ? (*notes)[*n_notes - 1].n : e->written;
	struct note *note = mo_vec_add(&note_desc, (void **)notes, n_notes);

	mo_assert(!e->gone); /* nothing follows NOTE_GONE */
	note->kind = kind;
	note->n = n + 1;
	return note;
}

void agent_step_last_notes(const struct agent_step *e, struct note **notes, size_t *n_notes)
{
	bool all_exited = e->n_ranks > 0;

	if (e->gone)
		return;
	for (size_t i = 0; i < e->n_ranks; i++)
		all_exited &= e->ranks[i].exited;
	if (e->never_started && !e->written) {
		add(e, NOTE_GONE, notes, n_notes)->text =
			mo_strdup("it was never started on this node");
		return;
	}
	/* Every rank's end was seen, or it was refused with a reason: the supervisor's death
	 * adds nothing. */
	if (!all_exited && !e->refused && !e->lost) {
		struct note *lost = add(e, NOTE_LOST, notes, n_notes);
		lost->cause = mo_strdup("supervisor-lost");
		lost->text = mo_strdup(e->text ? e->text : "the step's supervisor died");
	}
	for (size_t i = 0; i < e->n_ranks; i++) {
		const struct agent_step_rank *r = &e->ranks[i];
		if (r->exited || !(r->started || e->trimmed))
			continue;
		struct note *exit_note = add(e, NOTE_EXIT, notes, n_notes);
		exit_note->rank = e->first_rank + (int64_t)i;
		exit_note->pid = r->pid;
		exit_note->cause = mo_strdup("supervisor-lost");
	}
	add(e, NOTE_GONE, notes, n_notes)->text =
		mo_strdup("the supervisor is dead and a scan found no process of the step");
}

int agent_step_state(const struct agent_step *e)
{
	switch (e->phase) {
	case AS_SPOOLING:
	case AS_FENCING:
	case AS_HELD:
	case AS_IDLE: return STEP_SPOOLED;
	case AS_HUNG: return STEP_HUNG;
	case AS_GONE:
	case AS_REFUSED: return STEP_GONE;
	case AS_SWEEPING: return e->never_started && !e->written ? STEP_SPOOLED : STEP_STOPPING;
	case AS_WRITING: return STEP_STOPPING;
	case AS_STARTING:
	case AS_UP: break;
	}
	return e->stop || e->kill ? STEP_STOPPING : e->running ? STEP_RUNNING : STEP_STARTING;
}
