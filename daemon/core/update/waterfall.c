/* See waterfall.h. The stages follow one another: place, launch, init, load, recompute; each
 * ends with the first change of the job that proves it. */
#include "daemon/core/update/waterfall.h"

#include "lib/base/assert.h"

/* What showed a change: a sample says that the iterations from+1 .. j->iteration were done
 * until `time`, each in step_us (MO_NONE = unknown); anything else has from MO_NONE. */
struct seen {
	int64_t time, from, step_us;
};

static bool stage_over(const struct job *j)
{
	switch (j->waterfall.stage) {
	case 1: return j->run.n_places > 0;
	case 2:
		return (j->run.n_places > 0 && j->counts.started == (int64_t)j->run.n_places) ||
		       j->progress.iteration != MO_NONE;
	case 3:
		return (j->progress.phase != PHASE_NONE && j->progress.phase != PHASE_INIT) ||
		       j->progress.iteration != MO_NONE;
	case 4: return j->progress.phase == PHASE_TRAIN || j->progress.iteration != MO_NONE;
	case 5:
		return j->waterfall.lost_mark == MO_NONE ||
		       MO_MAX(j->progress.iteration, MO_MAX(j->run.resume, 0)) >=
			       j->waterfall.lost_mark;
	default: return false;
	}
}

/* When iteration i ended, by the sample of a later one (or by its own): they took equally
 * long. */
static int64_t ended(const struct job *j, const struct seen *s, int64_t i)
{
	double back = s->step_us == MO_NONE || i >= j->progress.iteration
			      ? 0
			      : (double)s->step_us * (double)(j->progress.iteration - i);

	return back < (double)s->time ? s->time - (int64_t)back : 0;
}

/* first: the sample is the first word of this attempt's training. When all lost iterations were
 * over by then, only their step time says how long they took: without it MO_NONE. */
static int64_t stage_end(const struct job *j, const struct seen *s, bool first)
{
	mo_assert(j->waterfall.stage >= 1 && j->waterfall.stage <= 5);
	if (s->from == MO_NONE)
		return s->time;
	if (j->waterfall.stage < 5)
		return ended(j, s, s->from);
	return first && s->step_us == MO_NONE && s->from < j->waterfall.lost_mark
		       ? MO_NONE
		       : ended(j, s, MO_MAX(s->from, j->waterfall.lost_mark));
}

/* Time until there are places is for the image, or for anything else, in turns. */
static void pass(struct job *j, int64_t end)
{
	struct waterfall *w = &j->incidents[j->n_incidents - 1].waterfall;
	int64_t *part = j->image.waits ? &w->image : &w->place;

	*part = MO_MAX(*part, 0) + (end - j->waterfall.at) / 1000;
	j->waterfall.at = end;
}

void waterfall_image(struct job *j, bool waits, int64_t time)
{
	if (j->image.waits != waits && j->waterfall.stage == 1 && j->n_incidents > 0)
		pass(j, MO_MAX(time, j->waterfall.at));
	j->image.waits = waits;
}

static void measure(struct job *j, const struct seen *s)
{
	bool first = j->waterfall.stage < 5;
	struct waterfall *w;
	int64_t *slot[6];

	if (j->waterfall.stage < 1 || j->waterfall.stage > 5 || j->n_incidents == 0)
		return;
	if (j->state == JOB_QUEUED || j->state == JOB_PAUSED || job_state_final(j->state)) {
		j->waterfall.stage = 0;
		return;
	}
	w = &j->incidents[j->n_incidents - 1].waterfall;
	slot[1] = NULL, slot[2] = &w->launch, slot[3] = &w->init, slot[4] = &w->load,
	slot[5] = &w->recompute;
	while (j->waterfall.stage <= 5 && stage_over(j)) {
		int64_t end = stage_end(j, s, first);
		if (end != MO_NONE) {
			end = MO_MAX(end, j->waterfall.at);
			if (j->waterfall.stage == 1) {
				pass(j, end);
			} else {
				*slot[j->waterfall.stage] = (end - j->waterfall.at) / 1000;
				j->waterfall.at = end;
			}
		}
		j->waterfall.stage++;
	}
	if (j->waterfall.stage > 5)
		j->waterfall.stage = 0;
	mo_assert(j->waterfall.stage >= 0 && j->waterfall.stage <= 5);
}

void waterfall_changed(struct job *j, int64_t time)
{
	measure(j, &(struct seen){ .time = time, .from = MO_NONE });
}

void waterfall_trained(struct job *j, int64_t at, int64_t from, double step_ms)
{
	bool known = step_ms != MO_NONE_F && step_ms >= 0 && step_ms < 1e12;

	if (j->waterfall.stage < 1 || j->progress.iteration <= from)
		return;
	/* they cannot have taken longer than there was time */
	int64_t most = MO_MAX(at - j->waterfall.at, 0) / (j->progress.iteration - from);
	measure(j, &(struct seen){ .time = at,
				   .from = from,
				   .step_us = known ? MO_MIN((int64_t)(step_ms * 1000), most)
						    : MO_NONE });
}
