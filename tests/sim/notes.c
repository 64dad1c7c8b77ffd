/* See notes.h. */
#include "tests/sim/notes.h"

#include <errno.h>

#include "agent/core/stepd/spool.h"
#include "tests/sim/seams.h"
#include "tests/sim/writer.h"
#include "tests/unit/seams/world.h"

#define SEGMENT 16 /* notes of a bulky journal's segment */

char *notes_dir(const struct sim *s, const struct simstep *st)
{
	return mo_printf("/%s/run/steps/j%lld.a%lld", s->nodes[st->node].name, (long long)st->job,
			 (long long)st->attempt);
}

static struct sim *sim; /* of which all steps are */

static void again(void *arg, int64_t us)
{
	const struct simstep *st = arg;

	sim_at(sim, sim->now + us, K_STEP_TICK, st->instance, 0, arg, NULL);
}

bool notes_open(struct sim *s, struct simstep *st)
{
	_cleanup_(mo_freep) char *dir = notes_dir(s, st);
	struct seam_life life = { 0 };

	sim = s;
	seam_be(&life);
	if (sim_fault(s, F_STEPD_WITHIN, 0.004))
		seam_crash_after(1 + sim_random(s) % 4);
	st->writer = writer_new(dir, again, st);
	seam_be(NULL);
	st->in_segment = 0;
	if (life.dead)
		sim_harm(s, st->job, st->attempt);
	if (!st->writer)
		return false;
	if (!mo_desc_equal(&launch_desc, &st->launch, writer_launch(st->writer)))
		sim_violation(s, "the supervisor of %s reads another launch", dir);
	if (life.dead)
		notes_close(st);
	return !life.dead;
}

void notes_add(struct simstep *st, const struct note *n)
{
	writer_add(st->writer, n);
	st->last_kind = n->kind;
}

bool notes_flush(struct sim *s, struct simstep *st)
{
	struct seam_life life = { 0 };
	int64_t before = writer_written(st->writer), n;

	if (!writer_waits(st->writer))
		return true;
	seam_be(&life);
	if (sim_fault(s, F_STEPD_WITHIN, 0.0004))
		seam_crash_after(1);
	else if (sim_fault(s, F_JOURNAL_FAILS, 0.002))
		seam_fail_after(1, ENOSPC);
	writer_flush(st->writer);
	seam_be(NULL);
	if (life.dead)
		return false;
	n = writer_written(st->writer) - before;
	st->in_segment += n;
	if (st->bulky && st->in_segment >= SEGMENT) {
		writer_segment_ends(st->writer);
		st->in_segment = 0;
	}
	if (n > 0) {
		struct stepd_word w;

		mo_desc_init(&stepd_word_desc, &w);
		w.written = writer_written(st->writer);
		line_say(s, st, &w);
	}
	return true;
}

bool notes_wait(const struct simstep *st)
{
	return writer_waits(st->writer);
}

void notes_close(struct simstep *st)
{
	st->writer = writer_free(st->writer);
}
