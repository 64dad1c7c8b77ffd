/* In place of agent/stepd/wake.c: what is ready in memory, and virtual time. */
#include "agent/stepd/wake.h"

#include <errno.h>
#include <sys/epoll.h>

#include "agent/stepd/loop.h"
#include "lib/base/file.h"
#include "tests/unit/seams/stepd/bed.h"

#define SOURCES_MAX 64

static struct {
	struct source *source;
	uint32_t events;
} watched[SOURCES_MAX];
static int64_t due = INT64_MAX;

int wake_open(struct stepd *s, const struct wake_calls *calls, struct mo_error *err)
{
	memset(watched, 0, sizeof(watched));
	due = INT64_MAX;
	s->wake = calls;
	return 0;
}

static size_t index_of(const struct source *source)
{
	size_t i = 0;

	while (i < SOURCES_MAX && watched[i].source != source)
		i++;
	return i;
}

int wake_watch(struct stepd *s, struct source *source, uint32_t events)
{
	size_t i = index_of(source->watched ? source : NULL);

	assert_true(i < SOURCES_MAX);
	watched[i].source = source;
	watched[i].events = events;
	source->watched = true;
	return 0;
}

void wake_unwatch(struct stepd *s, struct source *source)
{
	if (source->watched)
		watched[index_of(source)].source = NULL;
	source->watched = false;
	source->fd = mo_close(source->fd);
}

void wake_at(struct stepd *s, int64_t boot_us)
{
	due = boot_us;
}

/* The first source that is ready. */
static bool wake_one(struct stepd *s)
{
	for (size_t i = 0; i < SOURCES_MAX; i++)
		if (watched[i].source && (watched[i].events & EPOLLIN) &&
		    seam_readable(watched[i].source->fd)) {
			watched[i].source->fn(s, watched[i].source, EPOLLIN);
			return true;
		}
	return false;
}

/* Nobody waits here: the test calls turns. */
int wake_wait(struct stepd *s, struct mo_error *err)
{
	return -ENOSYS;
}

void seam_signal_self(struct stepd *s)
{
	s->wake->on_end(s);
}

void seam_step(struct stepd *s, int64_t us)
{
	for (int64_t until = seam_now() + us;;) {
		s->wake->on_child(s);
		stepd_turn(s);
		if (stepd_is_over(s) || seam_dead())
			return;
		if (wake_one(s))
			continue;
		if (due > until) {
			seam_time_at(until);
			return;
		}
		seam_time_at(due);
		due = INT64_MAX;
		s->wake->on_time(s);
	}
}
