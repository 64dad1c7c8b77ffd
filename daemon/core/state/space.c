/* See space.h. */
#include "daemon/core/state/space.h"

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/progress.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

/* saves that must fit where nobody knows how many are due */
#define FITS_MIN 3

static int64_t every(const struct job *j)
{
	return j->saves.every > 0 ? j->saves.every : j->spec.recipe.checkpoint.every;
}

/* From here on: the newest iteration, or the newest checkpoint before an attempt has any. */
static int64_t reached(const struct job *j)
{
	return MO_MAX(MO_MAX(j->progress.iteration, checkpoint_newest_at_most(j, INT64_MAX, false)),
		      0);
}

/* Saves until the last step; engines save once more there. */
static int64_t until_the_end(const struct job *j)
{
	int64_t steps = j->spec.recipe.steps, from = reached(j);

	if (steps == MO_NONE || every(j) <= 0)
		return MO_NONE;
	return from >= steps ? 0 : steps / every(j) - from / every(j) + (steps % every(j) != 0);
}

/* What checkpoint.keep counts: what lay there before the job is not removed. */
static int64_t held(const struct job *j)
{
	int64_t n = 0;

	for (size_t i = 0; i < j->n_checkpoints; i++)
		n += checkpoint_usable(&j->checkpoints[i]) && j->checkpoints[i].attempt != MO_NONE;
	return n;
}

/* Checkpoints that lie there until a node has removed them. */
static int64_t removed_soon(const struct job *j, int64_t keep)
{
	int64_t n = MO_MAX(held(j) - keep, 0);

	for (size_t i = 0; i < j->n_checkpoints; i++)
		n += checkpoint_removing(&j->checkpoints[i]);
	return n;
}

int64_t space_newest_size(const struct job *j)
{
	for (size_t i = j->n_checkpoints; i > 0; i--)
		if (checkpoint_usable(&j->checkpoints[i - 1]) && j->checkpoints[i - 1].bytes > 0)
			return j->checkpoints[i - 1].bytes;
	return 0;
}

/* Before a checkpoint is known: by the plan, of which a promise of an earlier version says
 * nothing. */
static int64_t planned_size(const struct job *j)
{
	double gb = j->spec.promise ? j->spec.promise->checkpoint_gb : MO_NONE_F;

	return gb > 0 && gb < 1e9 ? (int64_t)(gb * 1e9) : 0;
}

struct space space_of(const struct job *j)
{
	struct space s = { .free = j->progress.shown.checkpoint_free_bytes,
			   .size = space_newest_size(j),
			   .due = until_the_end(j) };
	int64_t keep = j->spec.recipe.checkpoint.keep;

	s.planned = s.size == 0;
	if (s.planned)
		s.size = planned_size(j);
	/* one that is written over needs the room that it has */
	if (s.free == MO_NONE || s.size == 0 || j->spec.engine.layout.unnumbered)
		return (struct space){ .due = s.due, .size = s.size, .planned = s.planned };
	s.fits = s.free / s.size;
	if (keep > 0) {
		/* one more than are kept: the oldest goes when the newest is whole */
		int64_t more = MO_MAX(keep - held(j), 0) + 1;

		s.due = s.due == MO_NONE ? more : MO_MIN(s.due, more);
		s.fits += removed_soon(j, keep);
	}
	s.wanted = s.due == MO_NONE ? FITS_MIN : s.due;
	if (s.fits >= s.wanted)
		s.level = SPACE_ENOUGH;
	else
		s.level = s.fits == 0 ? SPACE_FULL : SPACE_LOW;
	return s;
}

void space_add_bytes(struct mo_buf *b, int64_t bytes)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	double v = (double)bytes;
	size_t u = 0;

	for (; v >= 1000 && u + 1 < ELEMENTSOF(units); u++)
		v /= 1000;
	mo_buf_printf(b, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void add_when(struct mo_buf *b, const struct job *j, const struct space *s)
{
	int64_t step = samples_step_us(j), until = every(j), at;
	bool planned = step == 0 && j->spec.promise && j->spec.promise->step_time_s > 0;

	if (planned)
		step = (int64_t)(MO_MIN(j->spec.promise->step_time_s, 1e9) * 1e6);
	if (until <= 0)
		return;
	at = (reached(j) / until + s->fits + 1) * until;
	mo_buf_printf(b, ": it is full at iteration %lld", (long long)at);
	if (step > 0) {
		double hours = (double)(at - reached(j)) * (double)step / 3.6e9;

		mo_buf_printf(b, hours >= 48 ? ", in about %.0f days%s" : ", in about %.1f h%s",
			      hours >= 48 ? hours / 24 : hours, planned ? " as planned" : "");
	}
}

char *space_text(const struct job *j, const struct space *s)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (s->level != SPACE_LOW && s->level != SPACE_FULL)
		return NULL;
	mo_assert(j->saves.dir);
	if (s->level == SPACE_FULL)
		mo_buf_str(&b, "the next checkpoint of ");
	else
		mo_buf_printf(&b, "%lld more checkpoint%s of ", (long long)s->fits,
			      s->fits == 1 ? "" : "s");
	space_add_bytes(&b, s->size);
	if (s->planned)
		mo_buf_str(&b, ", as planned for weights and optimizer states,");
	mo_buf_printf(&b, "%s in %s (",
		      s->level == SPACE_FULL ? " does not fit"
		      : s->fits == 1         ? " fits"
					     : " fit",
		      j->saves.dir);
	space_add_bytes(&b, s->free);
	mo_buf_str(&b, " free)");
	if (s->level == SPACE_LOW) {
		if (s->due != MO_NONE)
			mo_buf_printf(&b, ", and %lld are due", (long long)s->due);
		add_when(&b, j, s);
	}
	return mo_buf_take(&b);
}
