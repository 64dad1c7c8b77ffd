/* What comes by roads (road.c): frames become requests, with the checks that they would have had by
 * their heads. Who breaks the rules (an unknown word, a frame that is too long, more than
 * FRAME_UNDER_WAY_MAX that are not answered) is told so and cut off. */
#include "lib/http/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/http/door.h"
#include "lib/http/ended.h"
#include "lib/http/held.h"
#include "lib/http/reply.h"
#include "lib/http/request_check.h"
#include "lib/http/road.h"
#include "lib/wire/encode.h"

#define EVENTS 16
#define WORK_NS 5000000    /* as long one callback of the loop may take, */
#define LISTEN_NS 20000000 /* and one that refuses a crowd */

static const struct http_route *route_of(const struct http_server *s, uint16_t code)
{
	for (size_t i = 0; code && i < s->config.n_routes; i++)
		if (s->config.routes[i].frame == code)
			return &s->config.routes[i];
	return NULL;
}

static struct http_request *begin(struct road *k, const struct http_route *route,
				  const struct frame *f)
{
	struct http_request *asked = k->asked, *r = mo_alloc(sizeof(*r));

	r->server = asked->server;
	r->mhd = asked->mhd;
	r->connection = asked->connection;
	r->frame_id = f->id;
	r->id = ++r->server->next_id;
	r->route = route;
	r->method = route->method;
	r->path = (char *)route->path;
	r->caller = asked->caller; /* its words are those of `asked`, which lives longer */
	r->client = asked->connection->client;
	r->received = f->length;
	r->server->stats.requests++;
	road_request_add(k, r);
	return r;
}

/* What a head would have been refused for. */
static bool admitted(struct http_request *r)
{
	const struct http_server_config *c = &r->server->config;

	if (r->server->quitting)
		http_problem(r, 503, "the controller is stopping: try again in a moment");
	else if (ended_token(r))
		reply_refuse(r, "the token of this request has ended");
	else
		return (!c->admit_head || c->admit_head(c->arg, r)) && door_open(r) &&
		       (!c->admit || c->admit(c->arg, r));
	return false;
}

/* Frees r, unless it is answered later. */
static void handled(struct http_request *r)
{
	r->handled = true;
	if (!r->answered) {
		held_add(r);
		return;
	}
	if (r->status == 429)
		road_end(r->road);
	road_request_free(r);
}

static void handle(struct http_request *r)
{
	if (door_left_behind(r))
		road_end(r->road);
	else
		r->route->handler(r->server->config.arg, r);
}

/* Those that had to wait, in the order of their coming. */
static int on_waiting(sd_event_source *e, void *userdata)
{
	struct http_server *s = userdata;
	int64_t began = mo_clock_thread_ns();
	struct http_request *r;

	while ((r = s->roads_waiting) && mo_clock_thread_ns() - began < WORK_NS) {
		DL_DELETE(s->roads_waiting, r);
		r->waits = false;
		handle(r);
		handled(r);
	}
	if (s->roads_waiting)
		sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
	return 0;
}

static void wait_turn(struct http_request *r, const char *body, size_t n)
{
	struct http_server *s = r->server;

	mo_buf_add(&r->body, body, n);
	r->waits = r->waited = true;
	DL_APPEND(s->roads_waiting, r);
	sd_event_source_set_enabled(s->roads_defer, SD_EVENT_ONESHOT);
}

/* body: n bytes, and one more that may be written for a moment. What is not prompt waits for its
 * turn, so that a crowd is heard as fast as it comes, and who is too many can be told so. */
static void one(struct road *k, const struct http_route *route, const struct frame *f, char *body)
{
	struct http_request *r = begin(k, route, f);
	char behind = body[f->length];

	if (admitted(r)) {
		door_enter(r);
		if (!route->prompt) {
			wait_turn(r, body, f->length);
			return;
		}
		body[f->length] = '\0';
		r->body = (struct mo_buf){ .data = body, .len = f->length };
		handle(r);
		r->body = (struct mo_buf){ 0 };
		body[f->length] = behind;
	}
	handled(r);
}

/* Says why, and cuts it off. */
static void refuse(struct road *k, const struct frame *f, int status, const char *detail)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };

	wire_problem(status, detail, &body);
	road_say(k,
		 &(struct frame){
			 .length = (uint32_t)body.len, .id = f->id, .code = (uint16_t)status },
		 body.data);
	k->asked->server->stats.by_class[status / 100]++;
	road_end(k);
}

/* The frame's route; NULL: it was refused. */
static const struct http_route *route_check(struct road *k, const struct frame *f)
{
	const struct http_route *route = route_of(k->asked->server, f->code);

	if (!route)
		refuse(k, f, 400, "a frame of no word that is known here");
	else if (f->length > route->max_body)
		refuse(k, f, 413, "a frame that is longer than its word may be");
	else if (k->n_requests >= FRAME_UNDER_WAY_MAX)
		refuse(k, f, 400, "too many frames that are not answered yet");
	else
		return route;
	return NULL;
}

/* All whole frames of data, which has a byte behind its n, as long as their answers leave; how many
 * bytes those are. */
static size_t take_frames(struct road *k, char *data, size_t n)
{
	const struct http_route *route;
	struct frame f;
	size_t at = 0;

	while (!k->ended && !k->stuck_us && n - at >= FRAME_HEAD) {
		frame_read(data + at, &f);
		route = route_check(k, &f);
		if (!route || n - at - FRAME_HEAD < f.length)
			break;
		one(k, route, &f, data + at + FRAME_HEAD);
		at += FRAME_HEAD + f.length;
	}
	return at;
}

static void take(struct road *k, char *data, size_t n)
{
	size_t taken;

	if (k->in.len == 0) {
		taken = take_frames(k, data, n);
		mo_buf_add(&k->in, data + taken, n - taken);
	} else {
		mo_buf_add(&k->in, data, n);
		taken = take_frames(k, k->in.data, k->in.len);
		mo_buf_consume(&k->in, taken);
	}
	if (k->in.len == 0) {
		mo_buf_done(&k->in);
		k->partial_us = 0;
	} else if (taken > 0 || !k->partial_us) {
		k->partial_us = mo_clock_mono_ns() / 1000;
	}
}

/* Once, so that who sends without end is one of many; but what GnuTLS has read of a record shows on
 * no descriptor, and is taken to its end. */
static void hear(struct road *k)
{
	char *data = k->asked->server->roads_buffer;
	ssize_t n;

	do {
		n = road_read(k, data);
		if (n > 0)
			take(k, data, (size_t)n);
	} while (!k->ended && n > 0 && k->tls && gnutls_record_check_pending(k->tls) > 0);
	if (n == 0 || (n < 0 && n != -EAGAIN))
		road_end(k);
	road_deadline(k);
}

/* What came while answers could not leave. */
static void go_on(struct road *k)
{
	char none = '\0';

	k->partial_us = 0;
	take(k, &none, 0);
	road_deadline(k);
}

static void ready(struct road *k, uint32_t events)
{
	if (!k->ended && events & EPOLLOUT) {
		road_flush(k);
		if (!k->ended && !k->stuck_us)
			go_on(k);
	}
	if (!k->ended && events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		hear(k);
}

/* What is left shows again, behind what else the loop has to do. */
static int on_roads(sd_event_source *e, int fd, uint32_t revents, void *userdata)
{
	struct http_server *s = userdata;
	int64_t began = mo_clock_thread_ns();
	struct epoll_event events[EVENTS];
	int n;

	do {
		n = epoll_wait(s->roads_epoll, events, EVENTS, 0);
		for (int i = 0; i < n; i++)
			ready(events[i].data.ptr, events[i].events);
	} while (n == EVENTS && mo_clock_thread_ns() - began < LISTEN_NS);
	return 0;
}

/* One descriptor for all: a source of the loop for each costs three times as much a message. */
static void roads_begin(struct http_server *s)
{
	if (s->roads_source)
		return;
	s->roads_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->roads_epoll < 0 ||
	    sd_event_add_io(s->loop, &s->roads_source, s->roads_epoll, EPOLLIN, on_roads, s) < 0 ||
	    sd_event_add_defer(s->loop, &s->roads_defer, on_waiting, s) < 0 ||
	    sd_event_source_set_enabled(s->roads_defer, SD_EVENT_OFF) < 0)
		abort();
	s->roads_buffer = mo_alloc(ROAD_READ_BYTES + 1);
}

static bool has_word(const char *list, const char *word)
{
	const char *at = list ? strcasestr(list, word) : NULL;
	size_t n = strlen(word);

	return at && (at == list || strchr(", ", at[-1])) && (!at[n] || strchr(", ", at[n]));
}

void http_road(struct http_request *r)
{
	static const char yes[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
				  "Upgrade: " FRAME_PROTOCOL "\r\n\r\n";
	if (!has_word(request_header(r, "Connection"), "upgrade") ||
	    !mo_streq(request_header(r, "Upgrade"), FRAME_PROTOCOL)) {
		http_problem(r, 426,
			     "this path is for agents alone: Connection: Upgrade, "
			     "Upgrade: " FRAME_PROTOCOL);
		return;
	}
	roads_begin(r->server);
	r->road = road_new(r);
	r->answered = true;
	r->status = 101;
	r->server->stats.by_class[1]++;
	r->server->stats.roads++;
	if (road_write(r->road, yes, sizeof(yes) - 1))
		road_deadline(r->road);
}

enum MHD_Result road_again(struct http_request *asked)
{
	if (asked->road->ended)
		return MHD_NO;
	asked->suspended = true;
	MHD_suspend_connection(asked->mhd);
	return MHD_YES;
}

void road_gone(struct http_request *asked)
{
	struct road *k = asked->road;

	road_end(k);
	while (k->n_requests > 0) {
		struct http_request *r = k->requests[0];

		if (r->gone && !r->answered)
			r->gone(r->gone_arg, r->id);
		if (r->waits)
			DL_DELETE(asked->server->roads_waiting, r);
		door_leave(r);
		road_request_free(r);
	}
	asked->server->stats.roads--;
	DL_DELETE(asked->server->roads, k);
	mo_buf_done(&k->in);
	mo_buf_done(&k->out);
	free(k);
	asked->road = NULL;
}

void roads_done(struct http_server *s)
{
	mo_assert(!s->roads);
	if (!s->roads_source)
		return;
	sd_event_source_disable_unref(s->roads_source);
	sd_event_source_disable_unref(s->roads_defer);
	mo_close(s->roads_epoll);
	free(s->roads_buffer);
}
