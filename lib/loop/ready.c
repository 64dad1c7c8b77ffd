/* Descriptors that have something to say, on the loop. */
#include "lib/loop/ready.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "lib/base/assert.h"
#include "lib/base/util.h"

struct mo_ready {
	sd_event_source *source;
	void (*fn)(void *arg);
	void *arg;
};

static int on_ready(sd_event_source *s, int fd, uint32_t events, void *userdata)
{
	struct mo_ready *r = userdata;

	mo_assert(r->source == s); /* a freed one is disabled before */
	r->fn(r->arg);
	return 0;
}

int mo_ready_new(sd_event *loop, int fd, void (*fn)(void *arg), void *arg, struct mo_ready **ret)
{
	struct mo_ready *r = mo_alloc(sizeof(*r));

	*r = (struct mo_ready){ .fn = fn, .arg = arg };
	int e = sd_event_add_io(loop, &r->source, fd, EPOLLIN, on_ready, r);
	if (e < 0) {
		mo_ready_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

struct mo_ready *mo_ready_free(struct mo_ready *r)
{
	if (r)
		sd_event_source_disable_unref(r->source);
	free(r);
	return NULL;
}
