/* See road.h. The connection is libcurl's, TLS included; what goes over it is ours. */
#include "lib/loop/road.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/assert.h"

#define HEAD_MAX 8192 /* of the answer to the request for it */
#define READ_BYTES 16384

struct mo_road {
	sd_event *loop;
	struct mo_http *http;
	uint64_t id; /* the connection's */
	sd_event_source *io;
	const struct mo_road_events *events;
	void *arg;
	bool stands;
	size_t max_body;
	struct mo_buf in, out;
	size_t sent; /* of out */
	bool *freed; /* set when it is freed inside of an event */
};

static void failed(struct mo_road *k, const char *error)
{
	if (k->stands)
		k->events->lost(k->arg, error);
	else
		k->events->opened(k->arg, 0, error);
}

static bool flush(struct mo_road *k)
{
	ssize_t n = 0;

	while (k->sent < k->out.len) {
		n = mo_http_write(k->http, k->id, k->out.data + k->sent, k->out.len - k->sent);
		if (n < 0)
			break;
		k->sent += (size_t)n;
	}
	if (k->sent == k->out.len) {
		mo_buf_done(&k->out);
		k->sent = 0;
	}
	sd_event_source_set_io_events(k->io, EPOLLIN | (k->out.len ? EPOLLOUT : 0));
	return n >= 0 || n == -EAGAIN;
}

void mo_road_send(struct mo_road *k, const struct frame *f, const void *body)
{
	char head[FRAME_HEAD];

	assert(k->stands);
	frame_write(f, head);
	mo_buf_add(&k->out, head, sizeof(head));
	mo_buf_add(&k->out, body, f->length);
	flush(k); /* an error shows again when it is read */
}

/* The status of the answer to the request for the road, once its head is whole; 0: not yet. */
static int status_of(struct mo_road *k)
{
	const char *end = k->in.data ? strstr(k->in.data, "\r\n\r\n") : NULL;
	int status = 0;

	if (!end)
		return k->in.len > HEAD_MAX ? -EPROTO : 0;
	if (sscanf(k->in.data, "HTTP/1.1 %3d", &status) != 1 || status < 100)
		return -EPROTO;
	mo_buf_consume(&k->in, (size_t)(end + 4 - k->in.data));
	return status;
}

/* false: nothing more comes, or it was freed. */
static bool take_head(struct mo_road *k, const bool *freed)
{
	int status = status_of(k);

	if (status == 0)
		return true;
	k->stands = status == 101;
	k->events->opened(k->arg, status < 0 ? 0 : status,
			  status < 0 ? "what answers there is no HTTP server" : NULL);
	return !*freed && k->stands;
}

static bool take_frames(struct mo_road *k, const bool *freed)
{
	struct frame f;

	while (k->in.len >= FRAME_HEAD) {
		frame_read(k->in.data, &f);
		if (f.length > k->max_body) {
			failed(k, "the answer is larger than allowed");
			return false;
		}
		if (k->in.len - FRAME_HEAD < f.length)
			break;
		_cleanup_(mo_buf_done) struct mo_buf whole = k->in;
		size_t rest = whole.len - FRAME_HEAD - f.length;

		k->in = (struct mo_buf){ 0 };
		mo_buf_add(&k->in, whole.data + FRAME_HEAD + f.length, rest);
		whole.data[FRAME_HEAD + f.length] = '\0';
		k->events->answered(k->arg, &f, whole.data + FRAME_HEAD);
		if (*freed)
			return false;
	}
	if (k->in.len == 0)
		mo_buf_done(&k->in);
	return true;
}

static void hear(struct mo_road *k, const bool *freed)
{
	char data[READ_BYTES];
	ssize_t n;

	while ((n = mo_http_read(k->http, k->id, data, sizeof(data))) > 0) {
		mo_buf_add(&k->in, data, (size_t)n);
		if (!k->stands && !take_head(k, freed))
			return;
		if (k->stands && !take_frames(k, freed))
			return;
	}
	if (n != -EAGAIN)
		failed(k, "the connection was closed");
}

static int on_io(sd_event_source *e, int fd, uint32_t revents, void *userdata)
{
	struct mo_road *k = userdata;
	bool freed = false;

	k->freed = &freed;
	if (revents & EPOLLOUT)
		flush(k);
	hear(k, &freed);
	if (!freed)
		k->freed = NULL;
	return 0;
}

static void on_connected(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct mo_road *k = arg;

	if (status == 0) {
		k->id = 0;
		k->events->opened(k->arg, 0, error);
		return;
	}
	if (sd_event_add_io(k->loop, &k->io, mo_http_fd(k->http, k->id), EPOLLIN, on_io, k) < 0)
		abort();
	flush(k);
}

int mo_road_new(sd_event *loop, struct mo_http *http, const struct mo_http_call *call,
		const struct mo_road_events *events, void *arg, struct mo_road **ret)
{
	struct mo_road *k = mo_alloc(sizeof(*k));
	struct mo_http_call connect = *call;
	const char *at = strstr(call->url, "://"), *host = at ? at + 3 : "localhost";

	connect.path = FRAME_PATH;
	connect.method = "GET";
	connect.body = NULL;
	connect.body_len = 0;
	connect.token = NULL;
	k->loop = loop;
	k->http = http;
	k->events = events;
	k->arg = arg;
	k->max_body = call->max_body;
	mo_buf_printf(&k->out,
		      "GET " FRAME_PATH " HTTP/1.1\r\nHost: %.*s\r\n%s%s%s"
		      "Connection: Upgrade\r\nUpgrade: " FRAME_PROTOCOL "\r\n\r\n",
		      (int)strcspn(host, "/"), host, call->token ? "Authorization: Bearer " : "",
		      call->token ? call->token : "", call->token ? "\r\n" : "");
	int r = mo_http_connect(http, &connect, on_connected, k, &k->id);
	if (r < 0) {
		mo_road_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

struct mo_road *mo_road_free(struct mo_road *k)
{
	if (!k)
		return NULL;
	if (k->freed)
		*k->freed = true;
	sd_event_source_disable_unref(k->io);
	if (k->id)
		mo_http_cancel(k->http, k->id);
	mo_buf_done(&k->in);
	mo_buf_done(&k->out);
	free(k);
	return NULL;
}
