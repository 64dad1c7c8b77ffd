/* Roads: connections on which the same requests come as frames (lib/base/frame.h) instead of by
 * HTTP, whose way costs twice as much (decision 035). libmicrohttpd checks who asks for one as it
 * checks every request; then it lets the connection rest for ever (suspended, out of its epoll
 * set), and the socket, or the TLS session, is read and written here. Its own upgrade would pass
 * every byte of TLS through a pair of sockets.
 *
 *   GET FRAME_PATH, Upgrade: moe/1 -> http_road() -> 101; frames from now on, none before it
 *   frame -> struct http_request -> the checks that a head would have -> the handler of its route
 *   http_reply() -> road_answer() -> frame
 *   the end: the socket is shut down, MHD resumed; its request_completed() -> road_gone()
 *
 * Here are the bytes; frames.c has what they mean. Who sends no frame in time, not all of one, or
 * does not read is cut off by connection.deadline_us, as everywhere. A road that rests has no
 * buffers. */
#include "lib/http/road.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/http/held.h"
#include "lib/http/pump.h"

#define SEND_PATIENCE 4 /* idle timeouts that an answer may wait to be read */

void road_deadline(struct road *k)
{
	struct connection *c = k->asked->connection;
	int64_t idle = k->asked->server->idle_us, at = INT64_MAX;

	if (k->stuck_us)
		at = k->stuck_us + SEND_PATIENCE * idle;
	else if (k->partial_us)
		at = k->partial_us + idle;
	if (at == INT64_MAX && !k->n_requests)
		at = mo_clock_mono_ns() / 1000 + idle;
	c->deadline_us = at == INT64_MAX ? 0 : at;
}

void road_end(struct road *k)
{
	struct http_request *asked = k->asked;

	if (k->ended)
		return;
	k->ended = true;
	epoll_ctl(asked->server->roads_epoll, EPOLL_CTL_DEL, asked->connection->fd, NULL);
	shutdown(asked->connection->fd, SHUT_RDWR);
	if (asked->suspended)
		MHD_resume_connection(asked->mhd);
	asked->suspended = false;
	pump_later(asked->server);
}

/* How many bytes were taken; < 0: the connection is of no more use. */
static ssize_t put(struct road *k, const char *data, size_t n)
{
	ssize_t w;

	if (!k->tls) {
		w = send(k->asked->connection->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		return w >= 0 ? w : errno == EAGAIN || errno == EINTR ? 0 : -errno;
	}
	w = k->half_record ? gnutls_record_send(k->tls, NULL, 0)
			   : gnutls_record_send(k->tls, data, n);
	k->half_record = w == GNUTLS_E_AGAIN || w == GNUTLS_E_INTERRUPTED;
	return w >= 0 ? w : k->half_record ? 0 : -ECONNRESET;
}

ssize_t road_read(struct road *k, char *data)
{
	ssize_t r;

	if (!k->tls) {
		r = recv(k->asked->connection->fd, data, ROAD_READ_BYTES, MSG_DONTWAIT);
		return r >= 0 ? r : errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
	}
	r = gnutls_record_recv(k->tls, data, ROAD_READ_BYTES);
	return r >= 0 ? r : gnutls_error_is_fatal((int)r) ? -ECONNRESET : -EAGAIN;
}

/* Who does not read his answers is not heard: there would be more of them without end. */
static void watch(struct road *k, int op)
{
	struct epoll_event e = { .events = k->stuck_us ? EPOLLOUT : EPOLLIN | EPOLLRDHUP,
				 .data.ptr = k };

	if (epoll_ctl(k->asked->server->roads_epoll, op, k->asked->connection->fd, &e) < 0)
		road_end(k);
}

/* As much as goes; how much that was, < 0: the road has ended. */
static ssize_t send_all(struct road *k, const char *data, size_t n)
{
	size_t sent = 0;
	ssize_t w = 0;

	while (sent < n && (w = put(k, data + sent, n - sent)) > 0)
		sent += (size_t)w;
	if (w < 0)
		road_end(k);
	return w < 0 ? w : (ssize_t)sent;
}

void road_flush(struct road *k)
{
	ssize_t sent = send_all(k, k->out.data + k->sent, k->out.len - k->sent);

	if (sent < 0)
		return;
	k->sent += (size_t)sent;
	if (k->sent < k->out.len)
		return;
	mo_buf_done(&k->out);
	k->sent = 0;
	k->stuck_us = 0;
	watch(k, EPOLL_CTL_MOD);
}

void road_say(struct road *k, const struct frame *f, const void *body)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char head[FRAME_HEAD];
	ssize_t sent;

	if (k->ended)
		return;
	frame_write(f, head);
	mo_buf_add(&b, head, sizeof(head));
	mo_buf_add(&b, body, f->length);
	sent = k->out.len ? 0 : send_all(k, b.data, b.len);
	if (sent < 0 || (size_t)sent == b.len)
		return;
	mo_buf_add(&k->out, b.data + sent, b.len - (size_t)sent);
	if (k->stuck_us)
		return;
	k->stuck_us = mo_clock_mono_ns() / 1000;
	watch(k, EPOLL_CTL_MOD);
}

void road_request_add(struct road *k, struct http_request *r)
{
	assert(k->n_requests < FRAME_UNDER_WAY_MAX);
	r->road = k;
	k->requests[k->n_requests++] = r;
}

void road_request_free(struct http_request *r)
{
	struct road *k = r->road;
	size_t i = 0;

	while (i < k->n_requests && k->requests[i] != r)
		i++;
	assert(i < k->n_requests);
	k->requests[i] = k->requests[--k->n_requests];
	held_remove(r);
	mo_buf_done(&r->body);
	free(r);
}

void road_answer(struct http_request *r, const void *body, size_t n)
{
	struct road *k = r->road;
	struct frame f = { .length = (uint32_t)n,
			   .id = r->frame_id,
			   .code = (uint16_t)r->status,
			   .after_s = (uint16_t)MO_MIN(r->after_s, UINT16_MAX) };

	mo_assert(k && n <= UINT32_MAX);
	road_say(k, &f, body);
	if (r->handled)
		road_request_free(r);
	road_deadline(k);
}

bool road_write(struct road *k, const char *data, size_t n)
{
	ssize_t sent = send_all(k, data, n);

	if (sent >= 0 && (size_t)sent < n)
		road_end(k);
	return !k->ended;
}

struct road *road_new(struct http_request *r)
{
	const union MHD_ConnectionInfo *tls =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	struct road *k = mo_alloc(sizeof(*k));

	k->asked = r;
	k->tls = tls ? tls->tls_session : NULL;
	DL_APPEND(r->server->roads, k);
	watch(k, EPOLL_CTL_ADD);
	return k;
}

void roads_end(struct http_server *s, bool (*which)(const struct http_request *asked))
{
	struct road *k;

	DL_FOREACH(s->roads, k)
		if (!which || which(k->asked))
			road_end(k);
}
