/* See hang_limits.h. */
#include "daemon/core/rules/hang_limits.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/util.h"

#define SEC 1000000LL
/* Slow starts and saves that were none of a hang: 13 minutes for a data set, 24 for a restore; a
 * first save that took 13 times the next one. */
#define START_US (1800 * SEC)
#define FIRST_STEP_US (900 * SEC)
#define SAVE_US (1800 * SEC)
#define EVAL_US (3600 * SEC)
#define TWO_US (30 * SEC)
#define ONE_US (60 * SEC)
/* a file system that stands for a minute, and a step behind it */
#define ASLEEP_US (120 * SEC)
/* What is sent again by TCP comes after two minutes at most, so what stood for as long is heard again
 * within four. */
#define UNREAD_US (300 * SEC)
/* Ranks of which one computes alone (an evaluation, code that is compiled anew: 8 minutes were
 * seen) move nothing either. Who waits for it in a collective is ended by PyTorch, Megatron and
 * DeepSpeed themselves: after 10 minutes, by default. */
#define CARDS_US (600 * SEC)
#define WRITTEN_US (900 * SEC)
#define WINDOW 512                    /* steps of which the times count */
#define GAP_MAX_US (30 * 86400 * SEC) /* no gap of a clock that jumped is longer */

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Between an iteration that was reported and the next one: what passed, or what the engine says
 * that a step took, whichever is more. Of lines that were held back and came together, *held: what
 * they took together: so long none came, though nobody saw it of the first ones. */
static int64_t gap_of(const struct sample *s, int64_t *held)
{
	int64_t passed = MO_MAX(s->time - s[-1].time, 0), step = 0, took;

	if (s->step_ms != MO_NONE_F && isfinite(s->step_ms) && s->step_ms > 0)
		step = (int64_t)(MO_MIN(s->step_ms, 1e9) * 1000);
	took = MO_MIN(step * MO_MIN(MO_MAX(s->iteration - s[-1].iteration, 1), 1000), GAP_MAX_US);
	*held = passed < took / 10 ? MO_MIN(*held + took, GAP_MAX_US) : 0;
	return MO_MIN(MO_MAX(MO_MAX(passed, step), *held), GAP_MAX_US);
}

/* False: too few of this attempt. */
static bool steps_of(const struct job *j, int64_t *ret_p99, int64_t *ret_longest)
{
	const struct job_progress *p = &j->progress;
	/* a node's clock that was set makes a gap that no attempt had time for */
	int64_t gaps[WINDOW],
		held = 0,
		most = j->run.placed_at == MO_NONE ? GAP_MAX_US
						   : MO_MAX(p->at - j->run.placed_at, 0);
	size_t n = 0;

	while (n < WINDOW && n + 1 < p->n_samples &&
	       p->samples[p->n_samples - n - 2].attempt == j->attempt)
		n++;
	for (size_t i = 0; i < n; i++)
		gaps[i] = MO_MIN(gap_of(&p->samples[p->n_samples - n + i], &held), most);
	if (n < HANG_STEPS_MIN)
		return false;
	qsort(gaps, n, sizeof(*gaps), ascending);
	*ret_p99 = gaps[n - 1 - n / 100];
	*ret_longest = gaps[n - 1];
	return true;
}

static struct hang_limits fixed(int64_t us, int64_t percent)
{
	int64_t suspect = us / 100 * percent;

	return (struct hang_limits){ .suspect = suspect,
				     .two = 2 * suspect,
				     .one = 2 * suspect,
				     .asleep = 2 * suspect,
				     .unread = 2 * suspect,
				     .cards = 2 * suspect,
				     .written = 2 * suspect,
				     .slow = 2 * suspect,
				     /* nobody compiles for longer without a line */
				     .spins = 8 * suspect,
				     .p99 = MO_NONE };
}

/* Of what nobody knows, us; of a job that started before, what is known of it: three times its
 * longest start, and a third of that at least, as caches of compiled code and of data may be cold
 * on another node. Who computes may compile there, for twice us at least. What is written alone,
 * and disks, say no more than before. */
static struct hang_limits starting(const struct job *j, int64_t us, int64_t percent)
{
	struct hang_limits l = fixed(us, percent);
	int64_t took = j->progress.longest_start_us;

	l.busy = true; /* others than the first may compile too */
	if (took == MO_NONE)
		return l;
	l.spins = MO_MIN(l.spins, MO_MAX(8 * MO_MIN(took, us), 2 * l.suspect));
	l.suspect = MO_MIN(l.suspect, MO_MAX(3 * MO_MIN(took, us), l.suspect / 3));
	l.two = l.one = l.asleep = l.unread = l.cards = 2 * l.suspect;
	return l;
}

struct hang_limits hang_limits_of(const struct job *j, int64_t percent)
{
	const struct job_progress *p = &j->progress;
	bool last = j->spec.recipe.steps != MO_NONE && p->iteration != MO_NONE &&
		    p->iteration >= j->spec.recipe.steps;
	int64_t p99 = MO_NONE, longest = 0;
	struct hang_limits l;

	if (p->phase == PHASE_EVAL)
		return fixed(EVAL_US, percent);
	if (p->phase == PHASE_SAVE || last) /* what follows the last iteration saves */
		return fixed(SAVE_US, percent);
	if (p->iteration == MO_NONE || p->phase == PHASE_LOAD || p->phase == PHASE_INIT)
		return starting(j, p->phase == PHASE_TRAIN ? FIRST_STEP_US : START_US, percent);
	if (!steps_of(j, &p99, &longest))
		return starting(j, FIRST_STEP_US, percent);
	l = (struct hang_limits){ .p99 = p99 };
	l.suspect = MO_MAX(3 * p99, HANG_SUSPECT_US / 100 * percent);
	l.two = MO_MAX(MO_MAX(5 * p99, 2 * longest), TWO_US / 100 * percent);
	l.one = MO_MAX(MO_MAX(8 * p99, 2 * longest), ONE_US / 100 * percent);
	l.asleep = MO_MAX(l.one, ASLEEP_US / 100 * percent);
	l.unread = MO_MAX(l.one, UNREAD_US / 100 * percent);
	l.cards = MO_MAX(l.one, CARDS_US / 100 * percent);
	l.written = MO_MAX(l.one, WRITTEN_US / 100 * percent);
	l.slow = MO_MAX(l.one, 2 * SAVE_US / 100 * percent);
	/* as an evaluation that is announced: what polls moves a little for ever */
	l.spins = MO_MAX(l.one, 2 * EVAL_US / 100 * percent);
	return l;
}
