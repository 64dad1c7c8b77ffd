/* Many HTTP requests on the sd-event loop: libcurl's multi socket interface. Connections are
 * kept and reused. The answer's callback runs from the loop, never from inside mo_http_send, and
 * may send or cancel other calls. A cancelled or freed call's callback never runs. */
#include "lib/loop/http_client.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <uthash.h>
#include "lib/loop/request.h"

#include "lib/base/assert.h"
#include "lib/loop/loop.h"

struct call {
	uint64_t id;
	struct request request;
	bool connects, connected; /* a connection alone */
	mo_http_fn fn;
	void *arg;
	UT_hash_handle hh;
};
struct mo_http {
	sd_event *loop;
	CURLM *multi;
	sd_event_source *timer;
	struct call *calls; /* by id */
	size_t n_connected;
	uint64_t next_id;
	int64_t retry_after_s; /* of the answer whose fn runs */
};
struct watch {
	struct mo_http *http;
	sd_event_source *source;
};

static void call_free(struct mo_http *h, struct call *c)
{
	HASH_DEL(h->calls, c);
	h->n_connected -= c->connected;
	curl->multi_remove_handle(h->multi, c->request.easy);
	request_done(&c->request);
	free(c);
}

static void finish(struct mo_http *h, CURLMsg *msg)
{
	struct call *c = NULL;
	curl_off_t after = 0;
	long status = 0;
	CURLcode code = msg->data.result;

	curl->easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&c);
	assert(c && h->calls);
	curl->easy_getinfo(msg->easy_handle, CURLINFO_RESPONSE_CODE, &status);
	curl->easy_getinfo(msg->easy_handle, CURLINFO_RETRY_AFTER, &after);
	h->retry_after_s = MO_MIN(MO_MAX(after, (curl_off_t)0), (curl_off_t)MO_RETRY_AFTER_MAX_S);
	if (c->connects && code == CURLE_OK) {
		c->connected = true;
		h->n_connected++;
		c->fn(c->arg, 200, "", 0, NULL);
		return;
	}
	/* Out of the table first: the callback may cancel anything, this call included. */
	HASH_DEL(h->calls, c);
	curl->multi_remove_handle(h->multi, c->request.easy);
	if (code == CURLE_OK)
		c->fn(c->arg, (int)status, c->request.answer.data ? c->request.answer.data : "",
		      c->request.answer.len, NULL);
	else
		c->fn(c->arg, 0, "", 0, request_error(&c->request, code));
	request_done(&c->request);
	free(c);
}

static void pump(struct mo_http *h, curl_socket_t fd, int bits)
{
	int running, left;
	CURLMsg *msg;

	curl->multi_socket_action(h->multi, fd, bits, &running);
	while ((msg = curl->multi_info_read(h->multi, &left)))
		if (msg->msg == CURLMSG_DONE)
			finish(h, msg);
}

static int on_socket(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct watch *w = userdata;
	int bits = 0;

	if (revents & (EPOLLIN | EPOLLHUP))
		bits |= CURL_CSELECT_IN;
	if (revents & EPOLLOUT)
		bits |= CURL_CSELECT_OUT;
	if (revents & EPOLLERR)
		bits |= CURL_CSELECT_ERR;
	pump(w->http, fd, bits);
	return 0;
}

static int on_timeout(sd_event_source *s, uint64_t usec, void *userdata)
{
	pump(userdata, CURL_SOCKET_TIMEOUT, 0);
	return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *socketp)
{
	struct mo_http *h = userdata;
	struct watch *w = socketp;
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

	if (what == CURL_POLL_REMOVE) {
		if (w) {
			sd_event_source_disable_unref(w->source);
			free(w);
			curl->multi_assign(h->multi, fd, NULL);
		}
		return 0;
	}
	if (w)
		return sd_event_source_set_io_events(w->source, events) < 0 ? -1 : 0;
	w = mo_alloc(sizeof(*w));
	w->http = h;
	if (sd_event_add_io(h->loop, &w->source, fd, events, on_socket, w) < 0) {
		free(w);
		return -1;
	}
	curl->multi_assign(h->multi, fd, w);
	return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *userdata)
{
	struct mo_http *h = userdata;

	if (timeout_ms < 0)
		return sd_event_source_set_enabled(h->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
	if (sd_event_source_set_time_relative(h->timer, (uint64_t)timeout_ms * 1000) < 0)
		return -1;
	return sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

int mo_http_new(sd_event *loop, struct mo_http **ret, struct mo_error *err)
{
	int r = curl_load(err);
	if (r < 0)
		return r;
	struct mo_http *h = mo_alloc(sizeof(*h));
	h->loop = sd_event_ref(loop);
	h->multi = curl->multi_init();
	r = h->multi ? sd_event_add_time(loop, &h->timer, CLOCK_MONOTONIC, UINT64_MAX,
					 MO_TIMER_SLACK_US, on_timeout, h)
		     : -ENOMEM;
	if (r >= 0)
		r = sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	if (r < 0) {
		mo_http_free(h);
		return mo_error_set(err, r, "HTTP client: %s", strerror(-r));
	}
	curl->multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl->multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl->multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl->multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	*ret = h;
	return 0;
}

struct mo_http *mo_http_free(struct mo_http *h)
{
	struct call *c, *tmp;

	if (!h)
		return NULL;
	HASH_ITER(hh, h->calls, c, tmp)
		call_free(h, c);
	if (h->multi)
		curl->multi_cleanup(h->multi);
	sd_event_source_disable_unref(h->timer);
	sd_event_unref(h->loop);
	free(h);
	return NULL;
}

static int begin(struct mo_http *h, const struct mo_http_call *call, bool connects, mo_http_fn fn,
		 void *arg, uint64_t *ret_id)
{
	assert(fn && call);
	struct call *c = mo_alloc(sizeof(*c));
	int r = request_init(&c->request, call);

	if (r < 0) {
		request_done(&c->request);
		free(c);
		return r;
	}
	c->id = ++h->next_id;
	c->connects = connects;
	if (connects)
		curl->easy_setopt(c->request.easy, CURLOPT_CONNECT_ONLY, 1L);
	c->fn = fn;
	c->arg = arg;
	curl->easy_setopt(c->request.easy, CURLOPT_PRIVATE, c);
	HASH_ADD(hh, h->calls, id, sizeof(c->id), c);
	if (curl->multi_add_handle(h->multi, c->request.easy) != CURLM_OK) {
		call_free(h, c);
		return -EIO;
	}
	if (ret_id)
		*ret_id = c->id;
	/* The first bytes leave now instead of after a turn of the loop. A call that ended
	 * already is reported by the timer, from the loop. */
	int running = 0;
	curl->multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	if (running < (int)(HASH_COUNT(h->calls) - h->n_connected))
		want_timer(h->multi, 0, h);
	return 0;
}

int mo_http_send(struct mo_http *h, const struct mo_http_call *call, mo_http_fn fn, void *arg,
		 uint64_t *ret_id)
{
	return begin(h, call, false, fn, arg, ret_id);
}

int mo_http_connect(struct mo_http *h, const struct mo_http_call *call, mo_http_fn fn, void *arg,
		    uint64_t *ret_id)
{
	return begin(h, call, true, fn, arg, ret_id);
}

static struct call *connection(struct mo_http *h, uint64_t id)
{
	struct call *c = NULL;

	HASH_FIND(hh, h->calls, &id, sizeof(id), c);
	assert(c && c->connected);
	return c;
}

int mo_http_fd(struct mo_http *h, uint64_t id)
{
	curl_socket_t fd = -1;

	curl->easy_getinfo(connection(h, id)->request.easy, CURLINFO_ACTIVESOCKET, &fd);
	return fd;
}

static ssize_t moved(CURLcode code, size_t n)
{
	return code == CURLE_OK ? (ssize_t)n : code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

ssize_t mo_http_read(struct mo_http *h, uint64_t id, void *data, size_t n)
{
	size_t got = 0;
	CURLcode code = curl->easy_recv(connection(h, id)->request.easy, data, n, &got);

	return moved(code, got);
}

ssize_t mo_http_write(struct mo_http *h, uint64_t id, const void *data, size_t n)
{
	size_t sent = 0;
	CURLcode code = curl->easy_send(connection(h, id)->request.easy, data, n, &sent);

	return moved(code, sent);
}

int64_t mo_http_retry_after_s(const struct mo_http *h)
{
	return h->retry_after_s;
}

void mo_http_cancel(struct mo_http *h, uint64_t id)
{
	struct call *c = NULL;

	HASH_FIND(hh, h->calls, &id, sizeof(id), c);
	if (c)
		call_free(h, c);
}
