/* See sources.h. */
#include "agent/stepd/sources.h"

#include <errno.h>
#include <sys/epoll.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"

int stepd_watch(struct stepd *s, struct source *source, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = source };
	int op = source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (epoll_ctl(s->epoll_fd, op, source->fd, &e) < 0)
		return -errno;
	source->watched = true;
	return 0;
}

void stepd_unwatch(struct stepd *s, struct source *source)
{
	if (source->watched)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->watched = false;
	source->fd = mo_close(source->fd);
}

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
