/* What a node reports of its steps and of checkpoint directories: notes become records, unknown
 * and missing steps are found. Called by fleet.c for each hello, beat and news. A step that a
 * node no longer reports under the same boot is not dead: its agent lost contact with it, and
 * only a person can know. */
#include "daemon/core/rules/reports.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/incarnation.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/verify.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

/* caller frees */
static char *how_it_ended(const struct job *j, const struct note *n)
{
	const char *meaning = engine_exit_meaning(&j->spec.engine, n->code);
	const char *name = n->signal > 0 ? sigabbrev_np((int)n->signal) : NULL;

	if (mo_streq(n->cause, "exited") && n->code != MO_NONE)
		return mo_printf("exit code %lld%s%s", (long long)n->code, meaning ? ": " : "",
				 meaning ? meaning : "");
	if (mo_streq(n->cause, "signalled") && n->signal != MO_NONE)
		return mo_printf("signal %lld%s%s", (long long)n->signal, name ? " SIG" : "",
				 name ? name : "");
	return mo_strdup(n->cause ? n->cause : "?");
}

/* An engine that announces at the wrong place does so at every save: told once. */
static void refused_event(struct turn *t, const struct job *j, const struct step *st,
			  const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_str(&b, "path", n->path);
	event_emit(t, EVENT_CHECKPOINT_REFUSED, j->id, st->node, n->rank, st->attempt, data_end(&b),
		   "checkpoint announced at %s, which is %s checkpoint.dir %s: it is not counted "
		   "as complete; announce the absolute path of what was saved there (told once per "
		   "job)",
		   n->path, n->path[0] == '/' ? "outside" : "relative, not inside",
		   j->spec.recipe.checkpoint.dir);
}

/* The engine saves where nothing would be resumed from: told at its first save, when that
 * begins. */
static void elsewhere_event(struct turn *t, const struct job *j, const struct step *st,
			    const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_str(&b, "path", n->path);
	data_str(&b, "dir", j->spec.recipe.checkpoint.dir);
	event_emit(t, EVENT_CHECKPOINT_ELSEWHERE, j->id, st->node, n->rank, st->attempt,
		   data_end(&b),
		   "%s saves to %s, and not to checkpoint.dir %s: it would never be resumed from "
		   "there, and ends with its first save, if the node says that these are two "
		   "places",
		   j->spec.recipe.name, n->path, j->spec.recipe.checkpoint.dir);
}

/* The first save that is not in checkpoint.dir is told of. */
static bool tell_place(struct turn *t, const struct job *j, const struct step *st,
		       const struct note *n)
{
	bool elsewhere = checkpoint_elsewhere(j, n);

	if ((n->kind != NOTE_CHECKPOINT && n->kind != NOTE_SAVING) ||
	    (!elsewhere && checkpoint_inside(j, n->path)))
		return false;
	if (elsewhere)
		elsewhere_event(t, j, st, n);
	else
		refused_event(t, j, st, n);
	return true;
}

static void note_event(struct turn *t, const struct job *j, const struct step *st,
		       const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *how = how_it_ended(j, n);
	_cleanup_(mo_freep) char *from =
		n->iteration == MO_NONE
			? NULL
			: mo_printf(" from iteration %lld", (long long)n->iteration);
	const char *path = checkpoint_entry_path(j, n->path);
	bool ours = mo_streq(n->cause, "killed") || mo_streq(n->cause, "stopped");
	int64_t iteration = checkpoint_iteration(n, j->progress.iteration);

	switch (n->kind) {
	case NOTE_EXIT:
		if (ours && j->run.n_ranks > 512)
			/* thousands of ends by our own order would push everything else out of
			 * the ring */
			return;
		data_int(&b, "code", n->code);
		data_int(&b, "signal", n->signal);
		data_str(&b, "cause", n->cause);
		event_emit(t, EVENT_RANK_EXITED, j->id, st->node, n->rank, st->attempt,
			   data_end(&b), "rank %lld on %s ended: %s", (long long)n->rank, st->node,
			   how);
		break;
	case NOTE_CHECKPOINT:
		if (iteration < 0 || checkpoint_elsewhere(j, n) || !checkpoint_inside(j, n->path))
			return;
		data_int(&b, "iteration", iteration);
		data_str(&b, "path", path);
		event_emit(t, EVENT_CHECKPOINT_SAVED, j->id, st->node, MO_NONE, st->attempt,
			   data_end(&b), "checkpoint %lld saved%s%s", (long long)iteration,
			   path ? ": " : "", path ? path : "");
		if (j->spec.engine.layout.unnumbered && n->text)
			event_emit(t, EVENT_CHECKPOINT_UNKEPT, j->id, st->node, MO_NONE,
				   st->attempt, NULL,
				   "checkpoint %lld is written over by the next save, and %s: a "
				   "failure in the middle of that save loses both",
				   (long long)iteration, n->text);
		break;
	case NOTE_RESUMED:
		data_int(&b, "iteration", n->iteration);
		event_emit(t, EVENT_JOB_RESUMED, j->id, st->node, n->rank, st->attempt,
			   data_end(&b), "the engine says it resumed%s", from ? from : "");
		break;
	case NOTE_REFUSED:
		data_str(&b, "cause", n->cause);
		event_emit(t, EVENT_STEP_REFUSED, j->id, st->node, n->rank, st->attempt,
			   data_end(&b), "%s refused the launch: %s%s%s", st->node,
			   n->cause ? n->cause : "?", n->text ? SAID : "", n->text ? n->text : "");
		break;
	case NOTE_LOST:
		event_emit(t, EVENT_STEP_LOST, j->id, st->node, MO_NONE, st->attempt, NULL,
			   "the supervisor of %s on %s died", j->spec.recipe.name, st->node);
		break;
	case NOTE_STOPPING:
		event_emit(t, EVENT_STEP_STOPPED_OUTSIDE, j->id, st->node, MO_NONE, st->attempt,
			   NULL, "the step on %s is being stopped, not by moectl: %s", st->node,
			   n->text ? n->text : "");
		break;
	case NOTE_UNKILLABLE:
		event_emit(t, EVENT_STEP_UNKILLABLE, j->id, st->node, n->rank, st->attempt, NULL,
			   "process %lld on %s cannot be killed; the node gets no work until it is "
			   "gone",
			   (long long)n->pid, st->node);
		break;
	default: break;
	}
}

/* An engine may print its directory with links resolved: it means checkpoint.dir all the same. */
static void name_place(const struct job *j, struct note *n)
{
	char *path = n->kind == NOTE_CHECKPOINT || n->kind == NOTE_SAVING
			     ? checkpoint_as_named(j, n->path)
			     : NULL;

	if (!path)
		return;
	free(n->path);
	n->path = path;
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
	bool refused = j->saves.path_refused, due = j->config.due;
	const struct note *notes;
	size_t n_notes;
	struct record r;

	record_init(&r, REC_NOTES);
	for (size_t i = 0; i < rep->n_notes; i++) {
		if (rep->notes[i].n <= through || st->ended)
			continue;
		through = rep->notes[i].n;
		mo_desc_copy(&note_desc, MO_ADD(&r, notes, &note_desc), &rep->notes[i]);
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
	j = job_find(&t->core->state, id);
	if (j->config.due && !due)
		config_ask(t, j);
	for (size_t i = 0; i < n_notes; i++) {
		const struct step *st_now;

		j = job_find(&t->core->state, id);
		st_now = step_find(j, rep->attempt, node);
		note_event(t, j, st_now, &notes[i]);
		refused = refused || tell_place(t, j, st_now, &notes[i]);
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
		if (!core_beat(t->core, j, p->rank, p->iteration, p->step_ms, t->now))
			continue;
		if (j->failure.waiting_node)
			core_touch(t->core, j->id);
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

/* fresh: this is the newest word of the agent's present instance about all its steps. */
static void known_step(struct turn *t, int64_t id, const struct step_report *rep, const char *node,
		       bool fresh)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct step *st = step_find(j, rep->attempt, node);

	/* An agent that died between spool and start comes back with an entry that nothing runs
	 * for: only the launch, told again, starts it. */
	bool idle = rep->state == STEP_SPOOLED && rep->written == 0;
	if (!st->accepted && !idle)
		accepted(t, id, rep, node, true);
	/* its supervisor died before it began, and then the agent */
	if (st->accepted && idle && fresh && !st->gone && st->through == 0)
		accepted(t, id, rep, node, false);
	if (rep->n_notes)
		apply_notes(t, id, node, rep);
	j = job_find(&t->core->state, id);
	st = step_find(j, rep->attempt, node);
	progress(t, j, st, rep);
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
	_cleanup_(mo_freep) char *name = mo_strdup(n->name);
	_cleanup_(mo_freep) struct step_id *ids = ids_of(steps, n_steps);

	for (size_t i = l->n_jobs; i > 0; i--) {
		const struct job *j = job_find(&t->core->state, l->jobs[i - 1]);

		for (const struct step *st = j ? step_next(j, name, -1) : NULL; st;) {
			struct step_report rep = { .job = j->id, .attempt = st->attempt };
			bool over = st->attempt != j->attempt || j->run.n_places == 0,
			     absent = !bsearch(&(struct step_id){ j->id, st->attempt }, ids,
					       n_steps, sizeof(*ids), by_id);

			if (absent && st->gone && over)
				forgotten(t, j->id, &rep, name);
			else if (absent && !st->gone && st->accepted && !st->missing)
				hung(t, j->id, &rep, name, true, EVENT_STEP_MISSING,
				     "the agent no longer knows the step");
			j = job_find(&t->core->state, rep.job);
			st = step_next(j, name, rep.attempt);
		}
	}
}

/* An agent takes no attempt of a job before it has proved the one before gone from its node:
 * what it holds proves that much of its own node. */
static void later_attempt(struct turn *t, const char *name, int64_t job, int64_t attempt)
{
	const struct job *j = job_find(&t->core->state, job);

	for (const struct step *st = j ? step_next(j, name, -1) : NULL;
	     st && st->attempt < attempt;) {
		int64_t known = st->attempt;
		struct record r;

		if (!st->gone) {
			record_init(&r, REC_GONE);
			r.job = job;
			r.attempt = known;
			r.node = mo_strdup(name);
			r.gone->how = mo_printf("the node took attempt %lld of the job after it",
						(long long)attempt);
			turn_emit(t, &r);
		}
		j = job_find(&t->core->state, job);
		st = step_next(j, name, known);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order and each once: a node that tells its thousands in another order each time says
 * nothing new, and one is found among them quickly. */
static void sort_names(char **names, size_t *n)
{
	size_t kept = 0;

	qsort(names, *n, sizeof(*names), by_name);
	for (size_t i = 0; i < *n; i++) {
		if (kept > 0 && strcmp(names[kept - 1], names[i]) == 0)
			free(names[i]);
		else
			names[kept++] = names[i];
	}
	*n = kept;
}

static bool same_names(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	for (size_t i = 0; i < n_a && n_a == n_b; i++)
		if (!mo_streq(a[i], b[i]))
			return false;
	return n_a == n_b;
}

/* Takes r's content when something changed. */
static void strange(struct turn *t, const char *name, struct record *r)
{
	const struct node *n = node_find(&t->core->state, name);
	struct rec_strange *k = r->strange;

	r->node = mo_strdup(name);
	k->holds_unknown = k->n_living > 0;
	if (k->n_living > 0)
		sort_names(k->living, &k->n_living);
	if (n->strange_steps != k->holds_unknown ||
	    !same_names(n->strange, n->n_strange, k->living, k->n_living))
		turn_emit(t, r);
	else
		mo_desc_done(&record_desc, r);
}

/* Was it stored once, or may it have been, after the backup that this state comes from? Then it
 * may be forgotten when it is gone. A job that is final takes no attempt again: one above its
 * last is of a controller whose state was put away for this one. */
static bool is_ours(const struct core *c, const struct job *j, const struct step_report *rep)
{
	return !job_is_out(&c->state, rep->job) && rep->job > 0 && rep->job < c->state.next_job &&
	       (!j || job_state_final(j->state) || rep->attempt < job_next_attempt(j));
}

/* Steps we do not have. One that lives keeps its node from work. fresh: as in fleet_reports(). */
static void stray_steps(struct turn *t, const char *name, const struct step_report *steps,
			size_t n_steps, bool fresh)
{
	struct live *l = core_live(t->core, name);
	struct record r;

	record_init(&r, REC_STRANGE);
	l->n_strays = 0;
	for (size_t i = 0; i < n_steps; i++) {
		const struct job *j = job_find(&t->core->state, steps[i].job);
		const struct node *n = node_find(&t->core->state, name);
		struct stray stray = { .job = steps[i].job,
				       .attempt = steps[i].attempt,
				       .written = steps[i].written,
				       .gone = steps[i].state == STEP_GONE };
		_cleanup_(mo_freep) char *step = NULL;

		if (j && step_find(j, steps[i].attempt, name))
			continue;
		stray.ours = is_ours(t->core, j, &steps[i]);
		*MO_GROW(l->strays, l->n_strays) = stray;
		if (fresh && j && !stray.gone && stray.attempt > j->attempt)
			later_attempt(t, name, stray.job, stray.attempt);
		if (stray.gone)
			continue;
		step = step_name(stray.job, stray.attempt);
		/* those of an earlier version are in no order: they are told once more at the
		 * most */
		if (n->n_strange == 0 ||
		    !bsearch(&step, n->strange, n->n_strange, sizeof(*n->strange), by_name))
			event_emit(t, EVENT_STEP_UNKNOWN, stray.job, name, MO_NONE, stray.attempt,
				   NULL,
				   "node %s holds step %s, which %s; it is kept and the node gets "
				   "no work until it ends, or 'moectl resolve %s --kill' ends it",
				   name, step,
				   job_is_out(&t->core->state, stray.job)
					   ? "is of a job in quarantine (moed --put-back)"
					   : "this controller never stored",
				   step);
		mo_strs_add(&r.strange->living, &r.strange->n_living, step);
	}
	strange(t, name, &r);
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
		absent_steps(t, node_find(&t->core->state, name), steps, n_steps);
	if (fresh || hello)
		stray_steps(t, name, steps, n_steps, fresh);
}

static void scan_events(struct turn *t, int64_t id, const struct checkpoint *before,
			size_t n_before)
{
	const struct job *j = job_find(&t->core->state, id);

	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint c = j->checkpoints[i];
		bool same = false, torn = c.state == CKPT_TORN;
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		for (size_t k = 0; k < n_before; k++)
			same |= before[k].iteration == c.iteration && before[k].state == c.state;
		if (same || (!torn && c.state != CKPT_VERIFIED))
			continue;
		data_int(&b, "iteration", c.iteration);
		data_str(&b, "path", c.path);
		data_str(&b, "reason", c.reason);
		event_emit(t, torn ? EVENT_CHECKPOINT_TORN : EVENT_CHECKPOINT_VERIFIED, id, NULL,
			   MO_NONE, c.attempt, data_end(&b), "checkpoint %lld is %s%s%s",
			   (long long)c.iteration, torn ? "not usable" : "complete",
			   c.reason ? ": " : "", c.reason ? c.reason : "");
		j = job_find(&t->core->state, id);
	}
}

static void scan_record(struct turn *t, const struct scan_result *scan)
{
	struct record r;

	record_init(&r, REC_SCAN);
	r.job = scan->job;
	r.attempt = scan->attempt;
	r.scan = mo_desc_dup(&scan_result_desc, scan);
	turn_emit(t, &r);
}

/* Takes the result over; events tell what it changed. */
static void record_scan(struct turn *t, const struct job *j, const struct scan_result *scan)
{
	struct job before;

	mo_desc_init(&job_desc, &before);
	for (size_t i = 0; i < j->n_checkpoints; i++)
		mo_desc_copy(&checkpoint_desc, MO_ADD(&before, checkpoints, &checkpoint_desc),
			     &j->checkpoints[i]);
	scan_record(t, scan);
	scan_events(t, scan->job, before.checkpoints, before.n_checkpoints);
	mo_desc_done(&job_desc, &before);
}

/* All of the directory was looked at. */
static void scanned(struct turn *t, const struct job *j, const struct scan_result *scan)
{
	if (scan->id != job_next_attempt(j) || scan->n_items > MO_CHECKPOINTS_MAX)
		return;
	if (j->scan.at_end ||
	    (!job_state_final(j->state) && j->run.n_places == 0 && !scan_fresh(j, t->now)))
		record_scan(t, j, scan);
}

void fleet_scanned(struct turn *t, const char *node, const struct scan_result *scan)
{
	const struct job *j = job_find(&t->core->state, scan->job);

	if (!j || !scan_asked(t->core, j, node, scan))
		return;
	switch (scan->order) {
	case ORDER_VERIFY:
		/* one record for each part: what is left to do follows from the state */
		record_scan(t, j, scan);
		break;
	case ORDER_PRUNE:
		if (!scan->error)
			scan_record(t, scan);
		break;
	default: scanned(t, j, scan);
	}
}
