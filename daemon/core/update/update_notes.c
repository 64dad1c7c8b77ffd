/* update.c's part for REC_NOTES: what the notes of a step change in its job. Notes of an older
 * attempt change only their own step. Called by core_update() only. */
#include "daemon/core/update/update_notes.h"

#include "daemon/core/state/progress.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/update/phases.h"
#include "daemon/core/update/prepared.h"
#include "daemon/core/update/samples.h"
#include "daemon/core/update/waterfall.h"
#include "lib/base/line.h"

#define LEFT_OUT_MAX (1LL << 52)
#define STUCK_MAX 4096 /* processes of one step that cannot be killed */

/* The step's own ranks only: a node speaks for no other. */
static struct rank *rank_of(struct job *j, const struct step *st, const struct note *n)
{
	return n->rank >= st->first_rank && n->rank < st->first_rank + st->n_ranks &&
			       (uint64_t)n->rank < j->run.n_ranks
		       ? &j->run.ranks[n->rank]
		       : NULL;
}

static void rank_exit(struct rank *k, int64_t code, int64_t signal, const char *cause)
{
	k->state = RANK_EXITED;
	if (!k->exit)
		k->exit = mo_desc_new(&rank_exit_desc);
	k->exit->code = code;
	k->exit->signal = signal;
	mo_str_set(&k->exit->cause, cause);
}

/* The ranks of a step about which no exit status will come any more. */
static void close_ranks(struct job *j, const struct step *st, const char *cause)
{
	for (int64_t r = st->first_rank;
	     r < st->first_rank + st->n_ranks && (uint64_t)r < j->run.n_ranks; r++)
		if (!j->run.ranks[r].exit)
			rank_exit(&j->run.ranks[r], MO_NONE, MO_NONE, cause);
}

static void on_started(struct job *j, const struct step *st, const struct note *n)
{
	struct rank *k = rank_of(j, st, n);

	/* Once in an attempt, and from where it was asked for (launch.c). */
	if (n->config && k && k->rank == 0 && j->config.attempt != j->attempt &&
	    j->spec.engine.experiment) {
		j->config.attempt = j->attempt;
		mo_str_set(&j->config.text, n->config);
		mo_str_set(&j->config.node, st->node);
		j->config.due = true;
	}
	if (!k || k->exit)
		return;
	k->state = RANK_RUNNING;
	k->pid = n->pid;
	k->start_time = n->start_time;
	mo_str_set(&k->cpus, n->cpus);
	k->numa_node = n->numa_node;
	k->bind_verified = n->bind_verified;
	mo_str_set(&k->bind_note, n->bind_note);
}

static void on_binding(struct job *j, const struct step *st, const struct note *n)
{
	struct rank *k = rank_of(j, st, n);

	if (!k || k->exit)
		return;
	k->bind_verified = n->bind_verified;
	mo_str_set(&k->bind_note, n->bind_note);
}

static void on_exit_note(struct job *j, struct step *st, const struct note *n, int64_t time)
{
	struct rank *k = rank_of(j, st, n);
	bool good = n->code == 0;

	if (!k || k->exit)
		return;
	rank_exit(k, n->code, n->signal, n->cause);
	k->exit_mono_ns = n->mono_ns;
	if (n->iteration != MO_NONE && n->iteration > k->iteration)
		k->iteration = n->iteration;
	/* Engines colour their errors; reasons and reports show these lines as text. */
	for (size_t i = 0; i < n->n_tail && !job_state_final(j->state); i++) {
		_cleanup_(mo_freep) char *line = mo_line_plain_dup(n->tail[i]);

		mo_strs_add(&k->tail, &k->n_tail, line);
	}
	/* Supervisors of earlier versions do not say that they were told to end; but nobody here
	 * ordered it. */
	if (mo_streq(n->cause, "stopped") && j->intent == INTENT_NONE && !j->failure.decided &&
	    j->state != JOB_STOPPING)
		st->outside = true;
	st->n_exited++;
	if (!good)
		st->n_bad++;
	else if (j->failure.exit0_at == MO_NONE)
		j->failure.exit0_at = time;
}

/* What passed before the sample of an iteration that came from another phase: up to the
 * beginning of that iteration, not up to the beat that reported it. */
static void charge_until_began(struct job *j, const struct sample *s, int64_t at)
{
	int category = ledger_category(j);
	bool known = s->step_ms != MO_NONE_F && s->step_ms >= 0 && s->step_ms < 1e12;

	if (category == GPU_INIT || category == GPU_LOAD || category == GPU_LAUNCH ||
	    category == GPU_SAVE)
		ledger_charge_as(j, at - (known ? (int64_t)(s->step_ms * 1000) : 0), category);
	else if (category >= 0)
		ledger_charge(j, at);
}

/* `at` is when it was written; without that `highest` counts, the highest iteration in the same
 * record: the time since the last one is shared by all of them. */
static void on_sample(struct job *j, const struct step *st, const struct note *n, int64_t attempt,
		      int64_t at, int64_t time, int64_t sample_time, int64_t highest)
{
	struct rank *k = rank_of(j, st, n);
	int64_t iteration = n->sample->iteration, from = j->progress.iteration != MO_NONE
								 ? j->progress.iteration
								 : MO_MAX(j->run.resume, 0);
	int64_t to = n->time != MO_NONE ? iteration : MO_MAX(iteration, highest);
	/* by the samples before this one */
	int64_t explained = iteration > j->progress.iteration
				    ? progress_explains_us(j, MO_MAX(to - from, 1))
				    : 0;

	samples_add(j, n->sample, attempt, sample_time);
	if (k) {
		k->iteration = MO_MAX(k->iteration, iteration);
		k->step_ms = n->sample->step_ms;
	}
	if (iteration <= j->progress.iteration)
		return;
	charge_until_began(j, n->sample, at);
	/* the controller's clock may have been set back meanwhile: then it is not known */
	if (j->progress.iteration == MO_NONE && j->run.placed_at != MO_NONE &&
	    at >= j->run.placed_at)
		j->run.start_us = at - j->run.placed_at;
	if (j->progress.iteration <= j->run.resume && iteration > j->run.resume)
		checkpoint_loaded(j);
	phase_trains(j, n);
	if (ledger_category(j) < 0)
		ledger_charge_train(j, at, from, to, explained);
	j->progress.iteration = iteration;
	j->progress.at = time;
	j->progress.watermark = MO_MAX(j->progress.watermark, iteration);
	waterfall_trained(j, at, from, n->sample->step_ms);
}

/* at: when the note was written, in core time; r->time when that is not known. */
static void on_current(struct job *j, struct step *st, const struct note *n, const struct record *r,
		       int64_t at, int64_t sample_time, int64_t highest)
{
	switch (n->kind) {
	case NOTE_STARTED: on_started(j, st, n); break;
	case NOTE_BINDING: on_binding(j, st, n); break;
	case NOTE_RUNNING:
		prepared_add(j, st, n);
		ledger_charge(j, r->time);
		if (!st->started)
			j->counts.started++;
		break;
	case NOTE_PHASE: phase_word(j, st, n, at); break;
	case NOTE_SAMPLE: on_sample(j, st, n, r->attempt, at, r->time, sample_time, highest); break;
	case NOTE_SAVING:
		phase_saving(j, st, n, at);
		checkpoint_note(j, n, r->time);
		break;
	case NOTE_CHECKPOINT:
		phase_saved(j, n, at);
		checkpoint_note(j, n, r->time);
		break;
	case NOTE_REFUSED: prepared_add(j, st, n); break;
	case NOTE_EXIT: on_exit_note(j, st, n, r->time); break;
	case NOTE_LOST: close_ranks(j, st, "supervisor-lost"); break;
	case NOTE_GONE:
		close_ranks(j, st,
			    st->lost      ? "supervisor-lost"
			    : st->refused ? "not-started"
					  : "gone");
		break;
	default: break;
	}
	waterfall_changed(j, at);
}

/* Each process once, and no more than a node can have ranks. */
static void add_stuck(struct step *st, int64_t pid)
{
	bool known = false;

	for (size_t i = 0; i < st->n_stuck_pids; i++)
		known |= st->stuck_pids[i] == pid;
	if (pid > 0 && !known && st->n_stuck_pids < STUCK_MAX)
		mo_ints_add(&st->stuck_pids, &st->n_stuck_pids, pid);
}

static void on_step(struct step *st, const struct note *n)
{
	switch (n->kind) {
	case NOTE_RUNNING: st->started = true; break;
	case NOTE_REFUSED:
		st->refused = true;
		mo_str_set(&st->refused_cause, n->cause);
		mo_str_set(&st->refused_text, n->text);
		break;
	case NOTE_LOST: st->lost = true; break;
	case NOTE_STOPPING: st->outside = true; break;
	case NOTE_UNKILLABLE: add_stuck(st, n->pid); break;
	case NOTE_GONE:
		st->gone = st->ended = true;
		st->unkillable = st->hung = false;
		mo_str_set(&st->gone_how, n->text);
		break;
	default: break;
	}
}

/* A process in D state with SIGKILL pending never runs user code again. */
static bool only_stuck(const struct job *j, const struct step *st)
{
	if (st->n_stuck_pids == 0 || st->gone)
		return false;
	for (int64_t r = st->first_rank;
	     r < st->first_rank + st->n_ranks && (uint64_t)r < j->run.n_ranks; r++) {
		bool stuck = false;

		for (size_t i = 0; i < st->n_stuck_pids; i++)
			stuck |= st->stuck_pids[i] == j->run.ranks[r].pid;
		if (!j->run.ranks[r].exit && !stuck)
			return false;
	}
	return true;
}

/* When the newest note of a record was written, by both clocks of its node. */
struct newest {
	int64_t wall, mono_ns;
};

/* How long before the newest one it was written. The clock of the boot says it: the wall clock may
 * have been set between the two. */
static int64_t age_of(const struct note *n, const struct newest *newest)
{
	if (n->time == MO_NONE)
		return 0;
	return n->mono_ns != MO_NONE ? (newest->mono_ns - n->mono_ns) / 1000
				     : newest->wall - n->time;
}

void update_notes(struct job *j, const struct record *r)
{
	struct step *st = step_edit(j, r->attempt, r->node);
	struct newest newest = { MO_NONE, MO_NONE };
	int64_t highest = MO_NONE, last_sample = MO_NONE;
	/* nothing of a job happened before it was there */
	int64_t oldest_age = MO_MAX(r->time - j->created_at, 0);

	for (size_t i = 0; i < r->n_notes; i++) {
		const struct note *n = &r->notes[i];

		if (n->kind == NOTE_SAMPLE && n->sample)
			highest = MO_MAX(highest, n->sample->iteration);
		newest.wall = MO_MAX(newest.wall, n->time);
		newest.mono_ns = MO_MAX(newest.mono_ns, n->mono_ns);
	}
	for (size_t i = 0; i < r->n_notes; i++) {
		const struct note *n = &r->notes[i];
		int64_t age = MO_MIN(age_of(n, &newest), oldest_age);

		if (n->kind == NOTE_SAMPLE && !n->sample)
			continue;
		if (n->kind == NOTE_SAMPLE)
			last_sample = MO_MAX(last_sample, r->time - age);
		if (n->left_out > 0)
			j->progress.left_out = MO_MIN(MO_MAX(j->progress.left_out, 0) +
							      MO_MIN(n->left_out, LEFT_OUT_MAX),
						      LEFT_OUT_MAX);
		st->accepted = true;
		if (r->attempt == j->attempt)
			on_current(j, st, n, r, r->time - age, last_sample, highest);
		else if (n->kind == NOTE_SAMPLE)
			samples_add(j, n->sample, r->attempt, last_sample);
		on_step(st, n);
		st->through = n->n;
	}
	if (r->attempt == j->attempt)
		st->unkillable = only_stuck(j, st);
}
