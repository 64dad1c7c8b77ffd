/* See phases.h. */
#include "daemon/core/update/phases.h"

#include "daemon/core/state/progress.h"
#include "daemon/core/update/ledger.h"

static bool is_pause(int phase)
{
	return phase == PHASE_SAVE || phase == PHASE_EVAL;
}

/* Steps of an attempt follow one another, those of the newest at the end. */
static struct step *step_before(struct job *j, size_t *i)
{
	return *i > 0 && j->steps[*i - 1].attempt == j->attempt ? &j->steps[--*i] : NULL;
}

/* Of any step; PHASE_NONE: none of them pauses. */
static int pause_of(struct job *j)
{
	size_t i = j->n_steps;

	for (struct step *st; (st = step_before(j, &i));)
		if (st->pause != PHASE_NONE)
			return st->pause;
	return PHASE_NONE;
}

/* PHASE_NONE: all. */
static void pauses_end(struct job *j, int phase)
{
	size_t i = j->n_steps;

	for (struct step *st; (st = step_before(j, &i));)
		if (phase == PHASE_NONE || st->pause == phase)
			st->pause = PHASE_NONE;
}

static void phase_set(struct job *j, int phase, int64_t at)
{
	if (phase == j->progress.phase)
		return;
	ledger_charge(j, at);
	j->progress.phase = phase;
}

/* of: iteration of a save. Beside another pause both stand, and a line ends both. */
static void pause_begin(struct job *j, struct step *st, const struct note *n, int phase, int64_t of,
			int64_t at)
{
	struct job_progress *p = &j->progress;

	st->pause = PHASE_NONE;
	if (pause_of(j) == PHASE_NONE)
		p->phase_of = p->phase_said = MO_NONE;
	p->phase_of = MO_MAX(p->phase_of, of);
	p->phase_said = MO_MAX(p->phase_said, n->time);
	st->pause = phase;
	st->pause_rank = n->rank;
	j->saves.n += phase == PHASE_SAVE && p->phase != PHASE_SAVE;
	phase_set(j, phase, at);
}

void phase_word(struct job *j, struct step *st, const struct note *n, int64_t at)
{
	int pause;

	if (is_pause(n->phase)) {
		pause_begin(j, st, n, n->phase, MO_NONE, at);
		return;
	}
	if (st->pause_rank == n->rank)
		st->pause = PHASE_NONE;
	pause = pause_of(j);
	phase_set(j, pause != PHASE_NONE ? pause : n->phase, at);
}

void phase_saving(struct job *j, struct step *st, const struct note *n, int64_t at)
{
	pause_begin(j, st, n, PHASE_SAVE, n->iteration, at);
}

/* An earlier save than the one under way: its word is old, or it was written beside the steps. */
static bool is_earlier_save(struct job *j, const struct note *n)
{
	return pause_of(j) != PHASE_NONE && n->iteration != MO_NONE &&
	       n->iteration < j->progress.phase_of;
}

void phase_saved(struct job *j, const struct note *n, int64_t at)
{
	int pause;

	if (is_earlier_save(j, n))
		return;
	pauses_end(j, PHASE_SAVE);
	if (j->progress.phase != PHASE_SAVE) {
		ledger_charge_saved(j, at);
		return;
	}
	pause = pause_of(j);
	phase_set(j, pause != PHASE_NONE ? pause : PHASE_TRAIN, at);
}

/* The line of an iteration that was over when a save or an evaluation began may come behind their
 * word, from another node: it does not end them. A save says which iteration it is of; what trains
 * on beside one is behind that. */
static bool is_before(const struct job *j, const struct note *n)
{
	const struct job_progress *p = &j->progress;

	if (!is_pause(p->phase))
		return false;
	if (p->phase_of != MO_NONE)
		return n->sample->iteration <= p->phase_of;
	return n->time != MO_NONE && p->phase_said != MO_NONE &&
	       n->time - samples_step_us(j) <= p->phase_said;
}

void phase_trains(struct job *j, const struct note *n)
{
	if (is_before(j, n))
		return;
	if (is_pause(j->progress.phase))
		pauses_end(j, PHASE_NONE);
	j->progress.phase = PHASE_TRAIN;
}
