/* See heard.h. */
#include "daemon/core/state/heard.h"

#include <string.h>

#include "daemon/core/state/live.h"
#include "daemon/core/state/pace.h"
#include "daemon/core/state/robust.h"
#include "lib/base/util.h"

size_t beats_place(const struct job_beats *beats, size_t n, int64_t job)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (beats[mid].job < job)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct job_beats *beats_of(const struct state *s, const struct job *j)
{
	size_t at = beats_place(s->beats, s->n_beats, j->id);
	const struct job_beats *b = at < s->n_beats ? &s->beats[at] : NULL;

	return b && b->job == j->id && b->attempt == j->attempt && b->n_ranks == j->run.n_ranks
		       ? b
		       : NULL;
}

int64_t node_heard_at(const struct state *s, const struct node *n)
{
	size_t at;

	return s->lives && node_at(s, n->name, &at) ? s->lives[at]->heard_at : 0;
}

int64_t node_clock_time(const struct state *s, const char *node, int64_t mono_ns,
			int64_t *ret_error)
{
	size_t at;

	return s->lives && node_at(s, node, &at)
		       ? node_clock_at(&s->lives[at]->clock, mono_ns, ret_error)
		       : MO_NONE;
}

const struct step_wait *step_wait_of(const struct state *s, const char *node, int64_t job,
				     int64_t attempt)
{
	size_t at;
	const struct live *l = s->lives && node_at(s, node, &at) ? s->lives[at] : NULL;

	for (size_t i = 0; l && i < l->n_waits; i++)
		if (l->waits[i].job == job && l->waits[i].attempt == attempt)
			return &l->waits[i];
	return NULL;
}

int64_t job_progress_at(const struct state *s, const struct job *j)
{
	const struct job_beats *b = beats_of(s, j);

	return b ? MO_MAX(j->progress.at, b->advanced_at) : j->progress.at;
}

int64_t job_word_at(const struct state *s, const struct job *j)
{
	const struct job_beats *b = beats_of(s, j);

	return b ? b->word_at : MO_NONE;
}

void rank_progress_of(const struct state *s, const struct job *j, size_t rank,
		      int64_t *ret_iteration, double *ret_step_ms)
{
	const struct job_beats *b = beats_of(s, j);
	const struct rank_beat *k = b ? &b->ranks[rank] : NULL;
	const struct rank *reported = &j->run.ranks[rank];

	*ret_iteration = k ? MO_MAX(k->iteration, reported->iteration) : reported->iteration;
	*ret_step_ms = k && k->step_ms != MO_NONE_F && k->iteration >= reported->iteration
			       ? k->step_ms
			       : reported->step_ms;
}

int rank_phase_of(const struct state *s, const struct job *j, size_t rank)
{
	const struct job_beats *b = beats_of(s, j);

	return b ? b->ranks[rank].phase : PHASE_NONE;
}

int rank_judged_of(const struct state *s, const struct job *j, size_t rank, int64_t now)
{
	const struct job_beats *b = beats_of(s, j);

	return b && now < b->doing_until ? b->ranks[rank].doing : -1;
}

const char *job_hang_seen(const struct state *s, const struct job *j, int64_t now,
			  char *const **ret_evidence, size_t *ret_n)
{
	const struct job_beats *b = beats_of(s, j);

	if (!b || now >= b->doing_until)
		return NULL;
	*ret_evidence = b->evidence;
	*ret_n = b->n_evidence;
	return b->seen;
}

const struct rank_motion *rank_motion_of(const struct state *s, const struct job *j, size_t rank,
					 int64_t *ret_at)
{
	const struct job_beats *b = beats_of(s, j);

	if (!b || b->ranks[rank].motion_at == MO_NONE)
		return NULL;
	*ret_at = b->ranks[rank].motion_at;
	return &b->ranks[rank].motion;
}

const struct rank_recorder *rank_recorder_of(const struct state *s, const struct job *j,
					     size_t rank, int64_t *ret_at)
{
	const struct job_beats *b = beats_of(s, j);

	if (!b || b->ranks[rank].recorder_at == MO_NONE)
		return NULL;
	*ret_at = b->ranks[rank].recorder_at;
	return b->ranks[rank].recorder;
}

int64_t job_recorder_at(const struct state *s, const struct job *j)
{
	const struct job_beats *b = beats_of(s, j);

	return b ? b->recorder_at : MO_NONE;
}

const struct rank_acts *rank_acts_of(const struct state *s, const struct job *j, size_t rank)
{
	const struct job_beats *b = beats_of(s, j);

	return b ? &b->ranks[rank].acts : NULL;
}

double rank_own_ms(const struct rank_beat *k)
{
	double ms[OWN_WINDOW];

	if (k->n_own < PACE_SETTLE + OWN_WINDOW)
		return MO_NONE_F;
	memcpy(ms, k->own_ms, sizeof(ms));
	return robust_median(ms, OWN_WINDOW);
}

double rank_own_times(const struct rank_beat *k)
{
	double now = rank_own_ms(k);

	return now == MO_NONE_F || k->usual_ms == MO_NONE_F ? MO_NONE_F : now / k->usual_ms;
}

double rank_own_times_of(const struct state *s, const struct job *j, size_t rank)
{
	const struct job_beats *b = beats_of(s, j);

	return b ? rank_own_times(&b->ranks[rank]) : MO_NONE_F;
}

size_t ranks_own_known(const struct state *s, const struct job *j)
{
	const struct job_beats *b = beats_of(s, j);
	size_t n = 0;

	for (size_t i = 0; b && i < b->n_ranks; i++)
		n += rank_own_ms(&b->ranks[i]) != MO_NONE_F;
	return n;
}

void ranks_acts_known(const struct state *s, const struct job *j, int64_t now,
		      size_t *ret_processors, size_t *ret_gpus)
{
	const struct job_beats *b = beats_of(s, j);

	*ret_processors = *ret_gpus = 0;
	for (size_t i = 0; b && i < b->n_ranks; i++) {
		double values[_ACTIVITY_KIND_N];

		acts_now(&b->ranks[i].acts, now, values);
		*ret_processors += values[ACT_DELAY] != MO_NONE_F;
		*ret_gpus += values[ACT_BUSY] != MO_NONE_F;
	}
}
