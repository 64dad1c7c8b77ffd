/* See supervisor.h. */
#include "agent/supervisor.h"
#include <errno.h>

#include "lib/base/file.h"
#include "lib/base/socket.h"
#include "lib/loop/ready.h"

struct supervisor {
	int fd;
	struct mo_ready *ready;
	struct mo_buf *in;
	size_t max;
	supervisor_fn fn;
	void *arg;
};

struct supervisor *supervisor_free(struct supervisor *s)
{
	if (!s)
		return NULL;
	mo_ready_free(s->ready);
	mo_close(s->fd);
	free(s);
	return NULL;
}

static void on_readable(void *arg)
{
	struct supervisor *s = arg;
	bool ended = false;

	while (!ended) {
		char chunk[16384];
		ssize_t n = mo_socket_receive(s->fd, chunk, sizeof(chunk));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		ended = n <= 0 || s->in->len > s->max;
		if (n > 0)
			mo_buf_add(s->in, chunk, (size_t)n);
	}
	s->fn(s->arg, ended); /* which may end it */
}

int supervisor_connect(sd_event *loop, int dir, struct mo_buf *in, size_t max, supervisor_fn fn,
		       void *arg, struct supervisor **ret)
{
	int fd = mo_socket_connect(dir, "sock");

	if (fd < 0)
		return fd;
	struct supervisor *s = mo_alloc(sizeof(*s));

	*s = (struct supervisor){ .fd = fd, .in = in, .max = max, .fn = fn, .arg = arg };
	int r = mo_ready_new(loop, fd, on_readable, s, &s->ready);
	if (r < 0)
		supervisor_free(s);
	else
		*ret = s;
	return r;
}

int supervisor_send(struct supervisor *s, const void *data, size_t n)
{
	ssize_t sent = mo_socket_send(s->fd, data, n);

	return sent < 0 ? -errno : sent == (ssize_t)n ? 0 : -EAGAIN;
}
