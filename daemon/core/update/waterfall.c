/* See waterfall.h. The stages follow one another: place, launch, init, load, recompute; each
 * ends with the first change of the job that proves it. */
#include "daemon/core/update/waterfall.h"

#include "lib/base/assert.h"

/* What told of a change: a sample says that the iterations from+1 .. j->iteration were done
 * until `time`, each in step_us (MO_NONE = unknown); anything else has from MO_NONE. */
struct seen {
	int64_t time, from, step_us;
};

static bool stage_over(const struct job *j)
{
	switch (j->waterfall_stage) {
	case 1: return j->n_places > 0;
	case 2:
		return (j->n_places > 0 && j->n_started == (int64_t)j->n_places) ||
		       j->iteration != MO_NONE;
	case 3:
		return (j->phase != PHASE_NONE && j->phase != PHASE_INIT) ||
		       j->iteration != MO_NONE;
	case 4: return j->phase == PHASE_TRAIN || j->iteration != MO_NONE;
	case 5:
		return j->lost_mark == MO_NONE ||
		       MO_MAX(j->iteration, MO_MAX(j->resume, 0)) >= j->lost_mark;
	default: return false;
	}
}

/* When iteration i ended, told by the sample of a later one (or by its own): they took equally
 * long. */
static int64_t ended(const struct job *j, const struct seen *s, int64_t i)
{
	double back = s->step_us == MO_NONE || i >= j->iteration
			      ? 0
			      : (double)s->step_us * (double)(j->iteration - i);

	return back < (double)s->time ? s->time - (int64_t)back : 0;
}

/* first: the sample is the first word of this attempt's training. When all lost iterations were
 * over by then, only their step time says how long they took: without it MO_NONE. */
static int64_t stage_end(const struct job *j, const struct seen *s, bool first)
{
	mo_assert(j->waterfall_stage >= 1 && j->waterfall_stage <= 5);
	if (s->from == MO_NONE)
		return s->time;
	if (j->waterfall_stage < 5)
		return ended(j, s, s->from);
	return first && s->step_us == MO_NONE && s->from < j->lost_mark
		       ? MO_NONE
		       : ended(j, s, MO_MAX(s->from, j->lost_mark));
}

static void measure(struct job *j, const struct seen *s)
{
	bool first = j->waterfall_stage < 5;
	struct waterfall *w;
	int64_t *slot[6];

	if (j->waterfall_stage < 1 || j->waterfall_stage > 5 || j->n_incidents == 0)
		return;
	if (j->state == JOB_QUEUED || j->state == JOB_PAUSED || job_state_final(j->state)) {
		j->waterfall_stage = 0;
		return;
	}
	w = &j->incidents[j->n_incidents - 1].waterfall;
	slot[1] = &w->place, slot[2] = &w->launch, slot[3] = &w->init, slot[4] = &w->load,
	slot[5] = &w->recompute;
	while (j->waterfall_stage <= 5 && stage_over(j)) {
		int64_t end = stage_end(j, s, first);
		if (end != MO_NONE) {
			end = MO_MAX(end, j->waterfall_at);
			*slot[j->waterfall_stage] = (end - j->waterfall_at) / 1000;
			j->waterfall_at = end;
		}
		j->waterfall_stage++;
	}
	if (j->waterfall_stage > 5)
		j->waterfall_stage = 0;
	mo_assert(j->waterfall_stage >= 0 && j->waterfall_stage <= 5);
}

void waterfall_changed(struct job *j, int64_t time)
{
	measure(j, &(struct seen){ .time = time, .from = MO_NONE });
}

void waterfall_trained(struct job *j, int64_t at, int64_t from, double step_ms)
{
	bool known = step_ms != MO_NONE_F && step_ms >= 0 && step_ms < 1e12;

	if (j->waterfall_stage < 1 || j->iteration <= from)
		return;
	/* they cannot have taken longer than there was time */
	int64_t most = MO_MAX(at - j->waterfall_at, 0) / (j->iteration - from);
	measure(j, &(struct seen){ .time = at,
				   .from = from,
				   .step_us = known ? MO_MIN((int64_t)(step_ms * 1000), most)
						    : MO_NONE });
}
