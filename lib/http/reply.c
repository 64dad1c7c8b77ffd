/* Answers and streams. A response may be made inside the handler or later; MHD takes it only from
 * its access callback, so a held connection is resumed and asked again. A stream's body is pulled
 * by MHD from a backlog; with an empty one the connection is suspended until more is written. */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/base/clock.h"
#include "lib/base/assert.h"
#include "lib/http/door.h"
#include "lib/http/guard.h"
#include "lib/http/held.h"
#include "lib/http/pump.h"
#include "lib/http/represent.h"
#include "lib/http/road.h"
#include "lib/wire/encode.h"
#include "lib/http/reply.h"

#define SEND_PATIENCE 4 /* idle timeouts that a client may take to read its answer */

static void resume(struct http_request *r)
{
	mo_assert(!r->suspended || r->registered || r->waited || r->stream);
	if (!r->suspended)
		return;
	r->suspended = false;
	MHD_resume_connection(r->mhd);
	pump_later(r->server);
}

enum MHD_Result reply_queue(struct http_request *r)
{
	mo_assert(r->answered && !r->queued && r->response);
	r->queued = true;
	if (!r->stream)
		r->connection->deadline_us =
			mo_clock_mono_ns() / 1000 + SEND_PATIENCE * guard_patience(r->connection);
	return MHD_queue_response(r->mhd, (unsigned)r->status, r->response);
}

static void add_headers(struct http_request *r, const char *content_type, const char *const *extra)
{
	if (content_type)
		MHD_add_response_header(r->response, "Content-Type", content_type);
	MHD_add_response_header(r->response, "X-Content-Type-Options", "nosniff");
	bool cached = false;
	for (size_t i = 0; extra && extra[i]; i++) {
		_cleanup_(mo_freep) char *name = mo_strdup(extra[i]);
		char *colon = strchr(name, ':');
		if (!colon)
			continue;
		*colon = 0;
		cached |= strcmp(name, "Cache-Control") == 0;
		MHD_add_response_header(r->response, name, colon + 1 + strspn(colon + 1, " "));
	}
	if (!cached)
		MHD_add_response_header(r->response, "Cache-Control", "no-store");
}

static void count(struct http_request *r)
{
	int class = r->status / 100;

	mo_assert(r->status >= 100 && r->status <= 599);
	if (class >= 1 && class <= 5)
		r->server->stats.by_class[class]++;
}

static void make_response(struct http_request *r, const void *body, size_t n)
{
	r->response = MHD_create_response_from_buffer(n, n ? (void *)body : (void *)"",
						      MHD_RESPMEM_MUST_COPY);
	if (!r->response)
		abort();
}

/* The response of status 200, or 304 instead. */
static int make_document(struct http_request *r, const char *content_type, const void *body,
			 size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf packed = { 0 };
	char tag[REPRESENT_TAG_MAX];
	int status = 200;

	if (represent_tag(r, body, n, tag)) {
		status = 304;
		make_response(r, NULL, 0);
	} else if (represent_packed(r, content_type, tag, body, n, &packed)) {
		make_response(r, packed.data, packed.len);
		MHD_add_response_header(r->response, "Content-Encoding", "gzip");
	} else {
		make_response(r, body, n);
	}
	if (*tag) {
		MHD_add_response_header(r->response, "ETag", tag);
		MHD_add_response_header(r->response, "Vary", "Accept-Encoding");
	}
	return status;
}

void http_reply(struct http_request *r, int status, const char *content_type, const void *body,
		size_t n, const char *const *extra_headers)
{
	mo_assert(status >= 200 && status <= 599 && (body || n == 0));
	if (r->answered)
		return;
	if (r->road) {
		r->status = status;
		r->answered = true;
		door_leave(r);
		count(r);
		road_answer(r, body, n);
		return;
	}
	if (status == 200)
		status = make_document(r, content_type, body, n);
	else
		make_response(r, body, n);
	r->status = status;
	r->answered = true;
	door_leave(r);
	count(r);
	add_headers(r, content_type, extra_headers);
	resume(r);
}

static _printf_(4, 0) void problem(struct http_request *r, int status, int64_t after_s,
				   const char *fmt, va_list ap)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	_cleanup_(mo_freep) char *after = mo_printf("Retry-After: %lld", (long long)after_s);
	char detail[1024];

	mo_assert(status >= 400 && status <= 599 && after_s >= 0);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	r->after_s = after_s;
	if (status == 403 && r->server->config.refused)
		r->server->config.refused(r->server->config.arg, r, detail);
	wire_problem(status, detail, &body);
	http_reply(r, status, "application/problem+json", body.data, body.len,
		   after_s ? (const char *const[]){ after, NULL } : NULL);
}

void http_problem(struct http_request *r, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	problem(r, status, status == 429 || status == 503, fmt, ap);
	va_end(ap);
}

void http_problem_later(struct http_request *r, int status, int64_t after_s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	problem(r, status, after_s, fmt, ap);
	va_end(ap);
}

void reply_refuse(struct http_request *r, const char *detail)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };

	wire_problem(401, detail, &body);
	http_reply(r, 401, "application/problem+json", body.data, body.len,
		   (const char *const[]){ "WWW-Authenticate: Bearer realm=\"moe\"", NULL });
}

static void send_past(const struct http_request *r, const struct mo_buf *b)
{
	const union MHD_ConnectionInfo *tls =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	if (tls && tls->tls_session)
		(void)gnutls_record_send(tls->tls_session, b->data, b->len);
	else
		(void)send(r->connection->fd, b->data, b->len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void reply_cut(struct http_request *r, int status, const char *fmt, ...)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 }, all = { 0 };
	char detail[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	wire_problem(status, detail, &body);
	mo_buf_printf(&all,
		      "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nContent-Length: "
		      "%zu\r\nConnection: close\r\n\r\n",
		      status, MHD_get_reason_phrase_for((unsigned)status), body.len);
	mo_buf_add(&all, body.data, body.len);
	send_past(r, &all);
	r->status = status;
	r->answered = r->cut = true;
	count(r);
}

static ssize_t on_read(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct http_request *r = cls;

	mo_assert(r->stream && r->backlog_start <= r->backlog.len);
	if (r->backlog.len == r->backlog_start && r->drained && !r->stream_ended)
		r->drained(r->drained_arg, r->id);
	size_t n = MO_MIN(max, r->backlog.len - r->backlog_start);
	if (n > 0) {
		memcpy(buf, r->backlog.data + r->backlog_start, n);
		r->backlog_start += n;
		if (r->backlog_start == r->backlog.len) {
			mo_buf_reset(&r->backlog);
			r->backlog_start = 0;
		}
		return (ssize_t)n;
	}
	if (r->stream_ended || r->server->quitting)
		return MHD_CONTENT_READER_END_OF_STREAM;
	/* An idle stream keeps no buffer: there may be ten thousand of them. */
	mo_buf_done(&r->backlog);
	r->suspended = true;
	MHD_suspend_connection(r->mhd);
	return 0;
}

void http_stream_start(struct http_request *r, const char *content_type)
{
	if (r->answered)
		return;
	r->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, on_read, r, NULL);
	if (!r->response)
		abort();
	r->status = 200;
	r->answered = r->stream = true;
	r->server->stats.streams++;
	count(r);
	held_add(r);
	add_headers(r, content_type, NULL);
	resume(r);
}

int http_stream_write(struct http_request *r, const void *data, size_t n)
{
	mo_assert(r->stream && r->backlog_start <= r->backlog.len);
	if (r->stream_ended)
		return -EPIPE;
	if (r->backlog.len - r->backlog_start > HTTP_STREAM_BACKLOG_MAX) {
		r->stream_ended = true;
		shutdown(r->connection->fd, SHUT_RDWR);
		resume(r);
		return -ENOBUFS;
	}
	if (r->backlog_start > HTTP_STREAM_BACKLOG_MAX / 4) {
		mo_buf_consume(&r->backlog, r->backlog_start);
		r->backlog_start = 0;
	}
	mo_buf_add(&r->backlog, data, n);
	resume(r);
	return 0;
}

void http_stream_end(struct http_request *r)
{
	mo_assert(r->stream);
	r->stream_ended = true;
	resume(r);
}

size_t http_stream_backlog(const struct http_request *r)
{
	mo_assert(r->backlog_start <= r->backlog.len);
	return r->backlog.len - r->backlog_start;
}

void http_stream_on_drained(struct http_request *r, void (*fn)(void *arg, uint64_t id), void *arg)
{
	r->drained = fn;
	r->drained_arg = arg;
}

void http_on_gone(struct http_request *r, void (*fn)(void *arg, uint64_t id), void *arg)
{
	r->gone = fn;
	r->gone_arg = arg;
}
