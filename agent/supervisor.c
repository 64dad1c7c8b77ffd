/* See supervisor.h. */
#include "agent/supervisor.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "lib/base/file.h"

struct supervisor {
	int fd;
	sd_event_source *source;
	struct mo_buf *in;
	size_t max;
	supervisor_fn fn;
	void *arg;
};

struct supervisor *supervisor_free(struct supervisor *s)
{
	if (!s)
		return NULL;
	sd_event_source_disable_unref(s->source);
	mo_close(s->fd);
	free(s);
	return NULL;
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct supervisor *s = arg;
	bool ended = false;

	while (!ended) {
		char chunk[16384];
		ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		ended = n <= 0 || s->in->len > s->max;
		if (n > 0)
			mo_buf_add(s->in, chunk, (size_t)n);
	}
	s->fn(s->arg, ended); /* which may end it */
	return 0;
}

static int open_socket(int dir)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/sock", dir);
	_cleanup_(mo_closep) int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int supervisor_connect(sd_event *loop, int dir, struct mo_buf *in, size_t max, supervisor_fn fn,
		       void *arg, struct supervisor **ret)
{
	int fd = open_socket(dir);

	if (fd < 0)
		return fd;
	struct supervisor *s = mo_alloc(sizeof(*s));

	*s = (struct supervisor){ .fd = fd, .in = in, .max = max, .fn = fn, .arg = arg };
	int r = sd_event_add_io(loop, &s->source, fd, EPOLLIN, on_readable, s);
	if (r < 0)
		supervisor_free(s);
	else
		*ret = s;
	return r;
}

int supervisor_send(struct supervisor *s, const void *data, size_t n)
{
	ssize_t sent = send(s->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent < 0 ? -errno : sent == (ssize_t)n ? 0 : -EAGAIN;
}
