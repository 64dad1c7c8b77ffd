/* See controller.h. Messages go by one connection of our own, a road (lib/loop/road.h), as long as
 * there is one: the first hello asks for it, and what comes meanwhile waits. Where the controller
 * has none (one of a release before, a proxy between), and for what no frame has a word for, they
 * go by requests; the next hello asks again. A road speaks with the token that it was asked for
 * with: the next token gets another road once nothing is under way on this one.
 *
 *   none -> opening -> stands -> none (lost; given up with a hello or a sync)
 *              `-> refused -> opening, with the next hello
 *
 * The roads' client is one of its own: libcurl may close idle connections of a client that makes
 * others. */
#include "agent/controller.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/loop/http_client.h"
#include "lib/loop/loop.h"
#include "lib/loop/road.h"

#define OPEN_TIMEOUT_MS 10000

struct message {
	uint64_t id, request; /* request: of http; 0: it goes by the road, or waits for it */
	struct controller *controller;
	char *path, *token;
	uint16_t word; /* enum frame_word; 0: by requests alone */
	struct mo_buf json;
	int64_t until;    /* CLOCK_BOOTTIME, us */
	bool sent;        /* as a frame */
	bool lost;        /* its road is gone, which it is told by the timer */
	controller_fn fn; /* NULL: it was given up, its answer is awaited and dropped */
	void *arg;
	struct message *prev, *next;
};
enum road_state { ROAD_NONE, ROAD_OPENING, ROAD_STANDS, ROAD_REFUSED };
struct controller {
	const struct agent_config *config;
	sd_event *loop;
	struct mo_http *http, *roads;
	struct mo_road *road;
	enum road_state state;
	char *token; /* the road's */
	struct message *messages;
	struct mo_timer *timer;
	uint64_t n_messages;
	int64_t after_s; /* of the answer whose fn runs */
};

static void on_timer(void *arg);

int controller_new(struct manager *m, struct controller **ret, struct mo_error *err)
{
	struct controller *c = mo_alloc(sizeof(*c));

	c->config = m->config;
	c->loop = m->loop;
	int r = mo_http_new(m->loop, &c->http, err);
	if (r >= 0)
		r = mo_http_new(m->loop, &c->roads, err);
	if (r >= 0)
		r = mo_timer_new(m->loop, on_timer, c, &c->timer);
	if (r < 0)
		controller_free(c);
	else
		*ret = c;
	return r;
}

static void set_timer(struct controller *c)
{
	int64_t first = INT64_MAX;
	struct message *s;

	DL_FOREACH(c->messages, s)
		if (!s->request)
			first = MO_MIN(first, s->lost ? 0 : s->until);
	mo_timer_at(c->timer, first);
}

static void drop(struct controller *c, struct message *s)
{
	DL_DELETE(c->messages, s);
	if (s->request)
		mo_http_cancel(c->http, s->request);
	free(s->path);
	free(s->token);
	mo_buf_done(&s->json);
	free(s);
}

/* status 0 with error. fn may send and give up others. */
static void answer(struct controller *c, struct message *s, int status, const char *body, size_t n,
		   const char *error)
{
	controller_fn fn = s->fn;
	void *arg = s->arg;

	drop(c, s);
	if (fn)
		fn(arg, status, body, n, error);
}

struct controller *controller_free(struct controller *c)
{
	if (!c)
		return NULL;
	while (c->messages)
		drop(c, c->messages);
	mo_road_free(c->road);
	mo_http_free(c->roads);
	mo_http_free(c->http);
	mo_timer_free(c->timer);
	free(c->token);
	free(c);
	return NULL;
}

static struct mo_http_call call_of(const struct controller *c)
{
	return (struct mo_http_call){ .url = c->config->controller,
				      .max_body = MO_AGENT_BODY_BYTES_MAX,
				      .ca_file = c->config->ca_file };
}

static void on_answer(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct message *s = arg;
	struct controller *c = s->controller;

	c->after_s = mo_http_retry_after_s(c->http);
	s->request = 0;
	answer(c, s, status, body, n, error);
}

static int by_request(struct controller *c, struct message *s)
{
	struct mo_http_call call = call_of(c);

	call.path = s->path;
	call.method = "POST";
	call.body = s->json.data;
	call.body_len = s->json.len;
	call.token = s->token;
	call.content_type = "application/json";
	call.timeout_ms = MO_MAX((s->until - mo_clock_boot_us()) / 1000, 1);
	return mo_http_send(c->http, &call, on_answer, s, &s->request);
}

static void by_frame(struct controller *c, struct message *s)
{
	const struct frame f = { .length = (uint32_t)s->json.len,
				 .id = (uint32_t)s->id,
				 .code = s->word };

	s->sent = true;
	mo_road_send(c->road, &f, s->json.data);
	mo_buf_done(&s->json);
}

/* Those that waited for the road, once it stands or is refused. */
static void go_on(struct controller *c)
{
	struct message *s, *tmp;

	DL_FOREACH_SAFE(c->messages, s, tmp) {
		if (s->request || s->sent || s->lost)
			continue;
		if (c->state == ROAD_STANDS)
			by_frame(c, s);
		else if (by_request(c, s) < 0)
			s->lost = true;
	}
	set_timer(c);
}

/* All that went by the road, or wait for it, have no answer. */
static void road_lost(struct controller *c, const char *error)
{
	struct message *s;
	uint64_t newest = c->n_messages;
	_cleanup_(mo_freep) char *text = mo_strdup(error);

	c->road = mo_road_free(c->road);
	c->state = ROAD_NONE;
	c->after_s = 0;
	for (;;) {
		DL_FOREACH(c->messages, s)
			if (!s->request && s->id <= newest)
				break;
		if (!s)
			break;
		answer(c, s, 0, "", 0, text);
	}
	set_timer(c);
}

static void on_opened(void *arg, int status, const char *error)
{
	struct controller *c = arg;

	if (status == 0) {
		road_lost(c, error);
		return;
	}
	c->state = status == 101 ? ROAD_STANDS : ROAD_REFUSED;
	if (c->state == ROAD_REFUSED)
		c->road = mo_road_free(c->road);
	go_on(c);
}

static void on_answered(void *arg, const struct frame *f, const char *body)
{
	struct controller *c = arg;
	struct message *s;

	DL_FOREACH(c->messages, s)
		if (s->sent && (uint32_t)s->id == f->id)
			break;
	if (!s)
		return;
	c->after_s = f->after_s;
	answer(c, s, f->code, body, f->length, NULL);
	set_timer(c);
}

static void on_lost(void *arg, const char *error)
{
	road_lost(arg, error);
}

static const struct mo_road_events road_events = { on_opened, on_answered, on_lost };

static void road_open(struct controller *c, const char *token)
{
	struct mo_http_call call = call_of(c);

	call.token = token;
	call.timeout_ms = OPEN_TIMEOUT_MS;
	mo_str_set(&c->token, token);
	c->state = mo_road_new(c->loop, c->roads, &call, &road_events, c, &c->road) < 0
			   ? ROAD_REFUSED
			   : ROAD_OPENING;
}

static size_t under_way(const struct controller *c)
{
	const struct message *s;
	size_t n = 0;

	DL_FOREACH(c->messages, s)
		n += !s->request && !s->lost;
	return n;
}

static uint16_t word_of(const char *path)
{
	static const char *const words[] = { [FRAME_HELLO] = "/v1/agent/hello",
					     [FRAME_SYNC] = "/v1/agent/sync",
					     [FRAME_NEWS] = "/v1/agent/news",
					     [FRAME_ANSWER] = "/v1/agent/answer" };

	for (size_t i = FRAME_HELLO; i < ELEMENTSOF(words); i++)
		if (strcmp(path, words[i]) == 0)
			return (uint16_t)i;
	return 0;
}

/* Whether it goes by the road, or waits for it. */
static bool takes_road(struct controller *c, uint16_t word, const char *token)
{
	size_t n = under_way(c);

	if (!word || n >= FRAME_UNDER_WAY_MAX)
		return false;
	if (c->state == ROAD_REFUSED && word == FRAME_HELLO)
		c->state = ROAD_NONE;
	if (c->road && !mo_streq(c->token, token) && n == 0) {
		c->road = mo_road_free(c->road);
		c->state = ROAD_NONE;
	}
	if (c->state == ROAD_NONE)
		road_open(c, token);
	return c->state != ROAD_REFUSED && mo_streq(c->token, token);
}

uint64_t controller_send(struct controller *c, const char *path, const char *token,
			 const struct mo_buf *json, int64_t timeout_ms, controller_fn fn, void *arg)
{
	uint16_t word = word_of(path);
	bool road = takes_road(c, word, token);
	struct message *s = mo_alloc(sizeof(*s));
	int r = 0;

	s->id = ++c->n_messages;
	s->controller = c;
	s->path = mo_strdup(path);
	s->token = mo_strdup(token);
	s->word = word;
	mo_buf_add(&s->json, json->data, json->len);
	s->until = mo_clock_boot_us() + timeout_ms * 1000;
	s->fn = fn;
	s->arg = arg;
	DL_APPEND(c->messages, s);
	if (!road)
		r = by_request(c, s);
	else if (c->state == ROAD_STANDS)
		by_frame(c, s);
	set_timer(c);
	if (r >= 0)
		return s->id;
	mo_log(MO_ERR, NULL, NULL, "%s%s: %s", c->config->controller, path, strerror(-r));
	drop(c, s);
	return 0;
}

int64_t controller_retry_after_s(const struct controller *c)
{
	return c->after_s;
}

/* A hello or a sync is given up because nobody answers: neither will what goes by that road after
 * it. What else is under way there is told so by the timer. */
void controller_cancel(struct controller *c, uint64_t id)
{
	struct message *s;

	DL_FOREACH(c->messages, s)
		if (s->id == id)
			break;
	if (!s)
		return;
	bool silent = !s->request && (s->word == FRAME_HELLO || s->word == FRAME_SYNC);
	if (s->sent && !silent) {
		s->fn = NULL;
		return;
	}
	drop(c, s);
	if (silent) {
		c->road = mo_road_free(c->road);
		c->state = ROAD_NONE;
		DL_FOREACH(c->messages, s)
			s->lost |= !s->request;
	}
	set_timer(c);
}

static struct message *first_due(const struct controller *c, bool lost)
{
	int64_t now = mo_clock_boot_us();
	struct message *s;

	DL_FOREACH(c->messages, s)
		if (lost ? s->lost : !s->request && s->until <= now)
			break;
	return s;
}

/* A hello or a sync without an answer: the road is dead. Of anything else the answer may be late,
 * and is dropped then. */
static void on_timer(void *arg)
{
	struct controller *c = arg;
	struct message *s;

	c->after_s = 0;
	while ((s = first_due(c, true)))
		answer(c, s, 0, "", 0, "no answer in time");
	while ((s = first_due(c, false))) {
		controller_fn fn = s->fn;

		if (!s->sent || s->word == FRAME_HELLO || s->word == FRAME_SYNC) {
			road_lost(c, "no answer in time");
			continue;
		}
		s->fn = NULL;
		s->until = INT64_MAX;
		if (fn)
			fn(s->arg, 0, "", 0, "no answer in time");
	}
	set_timer(c);
}
