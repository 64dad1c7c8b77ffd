/* What a node reports of its steps: notes become records, missing steps are found (strays.c finds
 * unknown ones). Called by fleet.c for each hello, beat and urgent message. A step that a node no
 * longer reports under the same boot is not dead: its agent lost contact with it, and only a person
 * can know. */
#include "daemon/core/rules/reports.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/config.h"
#include "daemon/core/rules/data_order.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/note_events.h"
#include "daemon/core/rules/numbers.h"
#include "daemon/core/rules/release.h"
#include "daemon/core/rules/straggler.h"
#include "daemon/core/rules/strays.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/incarnation.h"

static void rename_place(struct note *n, char *path)
{
	if (!path)
		return;
	free(n->path);
	n->path = path;
}

/* An engine prints its directory as it sees it: in its image, and perhaps with links resolved. It
 * means checkpoint.dir of the nodes all the same. */
static void name_place(const struct job *j, struct note *n)
{
	if (n->kind != NOTE_CHECKPOINT && n->kind != NOTE_SAVING)
		return;
	if (j->spec.recipe.engine.container)
		rename_place(n, container_on_node(j->spec.recipe.engine.container, n->path));
	rename_place(n, checkpoint_as_named(j, n->path));
}

/* An announcement without a number means the iteration reached then: said in the record, so that
 * the ledger and the event name the same one. *reached: of the notes so far. */
static void name_iteration(const struct job *j, struct note *n, int64_t attempt, int64_t *reached)
{
	if (n->kind == NOTE_SAMPLE && n->sample && attempt == j->attempt)
		*reached = MO_MAX(*reached, n->sample->iteration);
	if (n->kind == NOTE_CHECKPOINT || n->kind == NOTE_SAVING)
		n->iteration = checkpoint_iteration(n, *reached);
}

static void apply_notes(struct turn *t, int64_t id, const char *node, const struct step_report *rep)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct step *st = step_find(j, rep->attempt, node);
	int64_t through = st->through, iteration = j->progress.iteration;
	struct numbers_told told = numbers_told(j);
	struct data_order_told data = data_order_told(j);
	bool slow = pace_slow(j);
	bool refused = j->saves.path_refused, due = j->config.due, word = false;
	const struct note *notes;
	size_t n_notes;
	struct record r;

	record_init(&r, REC_NOTES);
	for (size_t i = 0; i < rep->n_notes; i++) {
		if (rep->notes[i].n <= through || st->ended)
			continue;
		through = rep->notes[i].n;
		mo_desc_copy(&note_desc, MO_ADD(&r, notes, &note_desc), &rep->notes[i]);
		word |= rep->notes[i].kind != NOTE_SAMPLE;
		name_place(j, &r.notes[r.n_notes - 1]);
		name_iteration(j, &r.notes[r.n_notes - 1], rep->attempt, &iteration);
		if (rep->notes[i].kind == NOTE_GONE)
			break;
	}
	if (r.n_notes == 0)
		return;
	r.job = id;
	r.attempt = rep->attempt;
	r.node = mo_strdup(node);
	notes = r.notes; /* the record's from now on, which lives as long as the turn */
	n_notes = r.n_notes;
	turn_emit(t, &r);
	if (word && rep->attempt == j->attempt)
		core_word(t->core, j, t->now);
	if (j->config.due && !due)
		config_ask(t, j);
	numbers_tell(t, id, &told);
	pace_tell(t, id, slow);
	data_order_tell(t, id, &data);
	for (size_t i = 0; i < n_notes; i++) {
		const struct step *st_now = step_find(j, rep->attempt, node);

		note_event(t, j, st_now, &notes[i]);
		refused = refused || note_tell_place(t, j, st_now, &notes[i]);
	}
}

static void step_record(struct record *r, int type, int64_t job, const struct step_report *rep,
			const char *node)
{
	record_init(r, type);
	r->job = job;
	r->attempt = rep->attempt;
	r->node = mo_strdup(node);
}

static void accepted(struct turn *t, int64_t job, const struct step_report *rep, const char *node,
		     bool acts)
{
	struct record r;

	step_record(&r, REC_ACCEPT, job, rep, node);
	r.accept->acts = acts;
	turn_emit(t, &r);
}

static void forgotten(struct turn *t, int64_t job, const struct step_report *rep, const char *node)
{
	struct record r;

	step_record(&r, REC_FORGOTTEN, job, rep, node);
	turn_emit(t, &r);
}

static void progress(struct turn *t, const struct job *j, const struct step *st,
		     const struct step_report *rep)
{
	for (size_t i = 0; i < rep->n_progress && st->attempt == j->attempt; i++) {
		const struct rank_progress *p = &rep->progress[i];

		if (p->rank < st->first_rank || p->rank >= st->first_rank + st->n_ranks ||
		    (uint64_t)p->rank >= j->run.n_ranks)
			continue;
		core_phase(t->core, j, p);
		core_own(t->core, j, p);
		if (!core_beat(t->core, j, p->rank, p->iteration, p->step_ms, t->now))
			continue;
		if (j->failure.waiting_node)
			core_touch(t->core, j->id);
	}
	if (rep->n_progress && straggler_due(t, j))
		core_touch(t->core, j->id);
}

static void motion(struct turn *t, const struct job *j, const struct step *st,
		   const struct step_report *rep)
{
	for (size_t i = 0; i < rep->n_motion && st->attempt == j->attempt; i++) {
		const struct rank_motion *m = &rep->motion[i];

		if (m->rank >= st->first_rank && m->rank < st->first_rank + st->n_ranks &&
		    (uint64_t)m->rank < j->run.n_ranks)
			core_motion(t->core, j, m, t->now);
	}
	for (size_t i = 0; i < rep->n_recorder && st->attempt == j->attempt; i++) {
		const struct rank_recorder *k = &rep->recorder[i];

		if (k->rank >= st->first_rank && k->rank < st->first_rank + st->n_ranks &&
		    (uint64_t)k->rank < j->run.n_ranks)
			core_recorder(t->core, j, k, t->now);
	}
}

/* Windows in which the job stood still (it saves, or evaluates on one rank) say nothing of its
 * training. */
static void activity(struct turn *t, const struct job *j, const struct step *st,
		     const struct step_report *rep)
{
	bool usual = pace_usual(j);

	if (st->attempt != j->attempt ||
	    !pace_trains(j, job_progress_at(&t->core->state, j), t->now))
		return;
	for (size_t i = 0; i < rep->n_activity; i++) {
		const struct rank_activity *a = &rep->activity[i];

		if (a->rank >= st->first_rank && a->rank < st->first_rank + st->n_ranks &&
		    (uint64_t)a->rank < j->run.n_ranks)
			core_activity(t->core, j, a, usual, t->now);
	}
}

/* What cannot be reached: its supervisor does not answer (step.hung), or its agent lost the
 * step's directory (step.missing). */
static void hung(struct turn *t, int64_t id, const struct step_report *rep, const char *node,
		 bool flag, enum event_type type, const char *why)
{
	struct record r;

	_cleanup_(mo_freep) char *step = step_name(id, rep->attempt);
	bool missing = type == EVENT_STEP_MISSING;

	step_record(&r, REC_HUNG, id, rep, node);
	r.hung->reach = !flag ? REACH_ANSWERS : missing ? REACH_MISSING : REACH_HUNG;
	turn_emit(t, &r);
	if (flag && missing)
		event_emit(t, type, id, node, MO_NONE, rep->attempt, NULL,
			   "%s on node %s: not proof of death, so nothing is restarted; 'moectl "
			   "resolve %s --gone', said when no process of it is left there, is",
			   why, node, step);
	else if (flag)
		event_emit(t, type, id, node, MO_NONE, rep->attempt, NULL,
			   "%s on node %s: not proof of death, so nothing is restarted; 'moectl "
			   "fence %s --confirmed' after a power-off is",
			   why, node, node);
}

/* The agent says that the step is over, in no more notes than we have had, and none of these was
 * its end: what it has is the refusal of an order that came after a backup of the time before its
 * end was put back. The step that we know is not there any more. With no note at all it reads the
 * step's journal anew, after we told it that we have less than it remembers. */
static bool is_refusal_alone(const struct step *st, const struct step_report *rep)
{
	return rep->state == STEP_GONE && !st->ended && rep->written > 0 &&
	       rep->written <= st->through;
}

/* Nothing of it is to be had from its node any more: with its attempt over it is done with, once
 * it is proved dead. */
static bool done_with(const struct job *j, const struct step *st)
{
	return st->gone && (st->attempt != j->attempt || j->run.n_places == 0);
}

/* fresh: this is the newest word of the agent's present instance about all its steps. */
static void known_step(struct turn *t, int64_t id, const struct step_report *rep, const char *node,
		       bool fresh)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct step *st = step_find(j, rep->attempt, node);

	/* An agent that died between spool and start comes back with an entry that nothing runs
	 * for: only the launch, sent again, starts it. */
	bool idle = rep->state == STEP_SPOOLED && rep->written == 0;
	if (!st->accepted && !idle)
		accepted(t, id, rep, node, true);
	/* its supervisor died before it began, and then the agent */
	if (st->accepted && idle && fresh && !st->gone && st->through == 0)
		accepted(t, id, rep, node, false);
	if (rep->n_notes)
		apply_notes(t, id, node, rep);
	st = step_find(j, rep->attempt, node);
	progress(t, j, st, rep);
	if (fresh) {
		motion(t, j, st, rep);
		activity(t, j, st, rep);
	}
	if (fresh && is_refusal_alone(st, rep)) {
		if (done_with(j, st))
			forgotten(t, id, rep, node);
		else if (!st->gone && !st->missing)
			hung(t, id, rep, node, true, EVENT_STEP_MISSING,
			     "the agent knows only that it refused the step as seen before");
		return;
	}
	if (fresh && ((st->hung != (rep->state == STEP_HUNG) && !st->gone) || st->missing))
		hung(t, id, rep, node, rep->state == STEP_HUNG, EVENT_STEP_HUNG,
		     "the step's supervisor does not answer");
}

struct step_id {
	int64_t job, attempt;
};

static int by_id(const void *a, const void *b)
{
	const struct step_id *x = a, *y = b;

	return x->job != y->job ? (x->job > y->job) - (x->job < y->job)
				: (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

/* In order, to be found among thousands; caller frees. */
static struct step_id *ids_of(const struct step_report *steps, size_t n)
{
	struct step_id *ids = mo_alloc_array(n + 1, sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = (struct step_id){ steps[i].job, steps[i].attempt };
	qsort(ids, n, sizeof(*ids), by_id);
	return ids;
}

/* Steps of the node that its agent does not have (any more). */
static void absent_steps(struct turn *t, const struct node *n, const struct step_report *steps,
			 size_t n_steps)
{
	const struct live *l = core_live(t->core, n->name);
	_cleanup_(mo_freep) struct step_id *ids = ids_of(steps, n_steps);

	for (size_t i = l->n_jobs; i > 0; i--) {
		const struct job *j = job_find(&t->core->state, l->jobs[i - 1]);

		for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;) {
			struct step_report rep = { .job = j->id, .attempt = st->attempt };
			bool absent = !bsearch(&(struct step_id){ j->id, st->attempt }, ids,
					       n_steps, sizeof(*ids), by_id);

			if (absent && done_with(j, st))
				forgotten(t, j->id, &rep, n->name);
			else if (absent && !st->gone && st->accepted && !st->missing)
				hung(t, j->id, &rep, n->name, true, EVENT_STEP_MISSING,
				     "the agent no longer knows the step");
			/* a job's steps move when one is forgotten */
			st = step_next(j, n->name, rep.attempt);
		}
	}
}

/* A hello may be a late copy of a dead agent's, so only a beat of the present instance shows
 * what is absent. */
void fleet_reports(struct turn *t, const char *name, const struct step_report *steps,
		   size_t n_steps, bool fresh, bool hello)
{
	for (size_t i = 0; i < n_steps; i++) {
		const struct job *j = job_find(&t->core->state, steps[i].job);

		if (j && step_find(j, steps[i].attempt, name))
			known_step(t, j->id, &steps[i], name, fresh);
	}
	if (fresh)
		release_reports(t, name, steps, n_steps);
	if (fresh)
		absent_steps(t, node_find(&t->core->state, name), steps, n_steps);
	if (fresh || hello)
		stray_steps(t, name, steps, n_steps, fresh);
}
