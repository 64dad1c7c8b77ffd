/* See sources.h. */
#include "agent/stepd/sources.h"

#include "lib/base/clock.h"

struct stepd_event *stepd_queue(struct stepd *s, int type, struct note *n)
{
	struct stepd_event *e = MO_GROW(s->queue, s->n_queue);
	e->type = type;
	if (n) {
		e->note = *n;
		mo_desc_init(&note_desc, n);
	} else
		mo_desc_init(&note_desc, &e->note);
	return e;
}

void stepd_tick_in(struct stepd *s, int64_t us)
{
	s->tick_at_us = MO_MIN(s->tick_at_us, mo_clock_boot_us() + us);
}

void stepd_progress(struct stepd *s)
{
	if (s->progress_due)
		return;
	s->progress_due = true;
	stepd_tick_in(s, MO_MAX(0, s->progress_at_us + PROGRESS_US - mo_clock_boot_us()));
}
