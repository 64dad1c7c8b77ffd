/* In place of lib/base/socket.c: streams, datagrams and names in memory. */
#include "tests/unit/seams/streams.h"

#include <errno.h>

#include "lib/base/file.h"
#include "lib/base/socket.h"
#include "tests/unit/seams/world.h"

/* A name in a directory that somebody listens at. */
static struct {
	char *path;
	int fd;
} nodes[64];

static int fails(int e)
{
	errno = e;
	return -e;
}

ssize_t seam_take(struct seam_fd *d, void *ret, size_t n)
{
	size_t piece = d->in.len, head = 0;

	if (!d->in.len)
		return d->ended || d->peer < 0 ? 0 : fails(EAGAIN);
	if (d->packets) {
		head = sizeof(piece);
		memcpy(&piece, d->in.data, head);
	}
	size_t got = MO_MIN(piece, n);
	memcpy(ret, d->in.data + head, got);
	mo_buf_consume(&d->in, d->packets ? head + piece : got);
	return (ssize_t)got;
}

ssize_t seam_give(struct seam_fd *d, const void *data, size_t n)
{
	if (d->ended || !seam_is_open(d->peer))
		return fails(EPIPE);
	struct seam_fd *to = seam_fd(d->peer);
	if (to->packets)
		mo_buf_add(&to->in, &n, sizeof(n));
	mo_buf_add(&to->in, data, n);
	return (ssize_t)n;
}

void seam_pair(int *ret_one, int *ret_other)
{
	*ret_one = seam_fd_new();
	*ret_other = seam_fd_new();
	assert_true(*ret_one >= 0 && *ret_other >= 0);
	seam_fd(*ret_one)->peer = *ret_other;
	seam_fd(*ret_other)->peer = *ret_one;
}

void seam_packets(int fd)
{
	seam_fd(fd)->packets = true;
}

void seam_hold(int fd)
{
	seam_fd(fd)->holders++;
}

bool seam_readable(int fd)
{
	return seam_fd(fd)->in.len > 0 || seam_fd(fd)->ended;
}

int seam_peer(int fd)
{
	return seam_fd(fd)->peer;
}

bool seam_send(int fd, const char *text)
{
	return seam_give(seam_fd(fd), text, strlen(text)) >= 0;
}

void seam_close(int fd)
{
	mo_close(fd);
}

char *seam_received(int fd)
{
	struct mo_buf b = { 0 };

	mo_buf_add(&b, seam_fd(fd)->in.data, seam_fd(fd)->in.len);
	mo_buf_reset(&seam_fd(fd)->in);
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

/* ---- names ---- */

/* The path behind DIR/NAME; caller frees. */
static char *path_of(int dir, const char *name)
{
	return mo_printf("%s/%s", seam_fd(dir)->dir, name);
}

static int node(const char *path)
{
	for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
		if (nodes[i].path && mo_streq(nodes[i].path, path) && seam_exists(path))
			return seam_is_open(nodes[i].fd) ? nodes[i].fd : fails(ECONNREFUSED);
	return fails(ENOENT);
}

static int node_new(const char *path)
{
	if (seam_exists(path))
		return fails(EADDRINUSE);
	for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
		if (!nodes[i].path || mo_streq(nodes[i].path, path) ||
		    !seam_exists(nodes[i].path)) {
			seam_put(path, "");
			mo_str_set(&nodes[i].path, path);
			nodes[i].fd = seam_fd_new();
			seam_packets(nodes[i].fd);
			seam_fd(nodes[i].fd)->peer = nodes[i].fd; /* it stays open by itself */
			return nodes[i].fd;
		}
	return fails(EMFILE);
}

void seam_streams_done(void);
void seam_streams_done(void)
{
	for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
		mo_str_set(&nodes[i].path, NULL);
}

int seam_listen(const char *path)
{
	return node_new(path);
}

int seam_connect(const char *path)
{
	int listener = node(path), one, other;

	if (listener < 0)
		return listener;
	seam_pair(&one, &other);
	size_t n = sizeof(other);
	mo_buf_add(&seam_fd(listener)->in, &n, sizeof(n));
	mo_buf_add(&seam_fd(listener)->in, &other, n);
	return one;
}

int seam_accept(int listener)
{
	int fd;

	return seam_take(seam_fd(listener), &fd, sizeof(fd)) == sizeof(fd) ? fd : -1;
}

void seam_datagram(const char *path, const char *text)
{
	int fd = node(path);

	assert_true(fd >= 0);
	seam_give(seam_fd(fd), text, strlen(text));
}

int mo_socket_listen(int dir, const char *name)
{
	_cleanup_(mo_freep) char *path = path_of(dir, name);

	return seam_acts() ? node_new(path) : fails(EIO);
}

int mo_socket_accept(int listener, uid_t *ret_peer)
{
	int fd = seam_accept(listener);

	*ret_peer = 0;
	return fd >= 0 ? fd : fails(EAGAIN);
}

int mo_socket_connect(int dir, const char *name)
{
	_cleanup_(mo_freep) char *path = path_of(dir, name);

	return seam_connect(path);
}

int mo_socket_bind(int dir, const char *name)
{
	return mo_socket_listen(dir, name);
}

int mo_socket_connect_to_bound(int dir, const char *name)
{
	_cleanup_(mo_freep) char *path = path_of(dir, name);
	int to = node(path), fd = to < 0 ? to : seam_fd_new();

	if (fd >= 0)
		seam_fd(fd)->peer = to;
	return fd;
}

ssize_t mo_socket_receive(int fd, void *data, size_t n)
{
	return seam_take(seam_fd(fd), data, n);
}

ssize_t mo_socket_send(int fd, const void *data, size_t n)
{
	return seam_acts() ? seam_give(seam_fd(fd), data, n) : (ssize_t)n;
}

int mo_socket_claim(const char *name)
{
	return seam_fd_new();
}

int mo_socket_hold_port(int64_t port)
{
	return seam_fd_new();
}

char *mo_socket_interface(const char *address)
{
	return NULL;
}
