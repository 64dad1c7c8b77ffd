/* The controller as the agent sees it: hello, one held sync, urgent messages beside it on a
 * connection of its own, answers to queries. The core decides when each is sent; this carries it
 * and brings back what came. A late answer to something given up is dropped by its generation.
 * Tokens: a join token is traded before the first hello; whenever the controller says that the
 * token should be another one (message.h), it is traded beside everything else. */
#include "agent/link.h"
#include <errno.h>
#include <string.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "agent/controller.h"
#include "agent/core/agent/trouble.h"
#include "agent/discovery.h"
#include "agent/health.h"
#include "agent/messages.h"
#include "agent/metrics.h"
#include "agent/queue.h"
#include "agent/token.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/model/orders.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define HELLO_TIMEOUT_MS 11000 /* above the core's own patience, which decides */
#define SYNC_TIMEOUT_MS 15000
#define URGENT_TIMEOUT_MS 5000
#define ANSWER_TIMEOUT_MS 30000
#define TRADE_TIMEOUT_MS 10000
#define TRADE_EVERY_US (30 * 1000000LL) /* a trade that failed is tried again */

struct link {
	struct manager *m;
	struct controller *controller;
	struct node_token *tokens;
	char *traded;        /* the token of the trade under way */
	int64_t trade_after; /* CLOCK_BOOTTIME: not again before */
	bool hello_waits;    /* for the trade */
	bool expiry_logged;
	int trade_status;                    /* of the last one: a refusal is said once */
	uint64_t hello, sync, urgent, trade; /* calls under way, 0 = none */
	bool pulls;                          /* and that syncs may say so, and report images */
	bool motion;                         /* the same of what moves */
	bool doubts;                         /* and of its programs of doubt */
	bool space;                          /* and that scans may say free_bytes */
	bool busy;                           /* and that progress may say busy_ms */
	bool waits;                          /* and that steps may say waits */
	bool gpus;                           /* and that motion may tell of GPUs */
	bool orders;                         /* the welcome said that answers may name theirs */
	bool sync_leaving, urgent_leaving;   /* what they say of this machine: that it goes down */
	/* what was logged of it: each kind once, not at each try */
	struct trouble trouble;
};

int link_new(struct manager *m, struct link **ret, struct mo_error *err)
{
	struct link *l = mo_alloc(sizeof(*l));
	l->m = m;
	l->tokens = node_token_new(m->config);
	int r = controller_new(m, &l->controller, err);
	if (r < 0) {
		node_token_free(l->tokens);
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct link *link_free(struct link *l)
{
	if (!l)
		return NULL;
	controller_free(l->controller);
	node_token_free(l->tokens);
	free(l->traded);
	trouble_over(&l->trouble);
	free(l);
	return NULL;
}

static uint64_t post_with(struct link *l, const char *token, const char *path,
			  const struct mo_desc *desc, const void *body, int64_t timeout_ms,
			  controller_fn fn)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	wire_encode(desc, body, &b);
	return controller_send(l->controller, path, token, &b, timeout_ms, fn, l);
}

static uint64_t post(struct link *l, const char *path, const struct mo_desc *desc, const void *body,
		     int64_t timeout_ms, controller_fn fn)
{
	return post_with(l, node_token(l->tokens), path, desc, body, timeout_ms, fn);
}

static void no_answer(struct link *l, bool sync)
{
	struct agent_event e = { .type = AE_NO_ANSWER, .ok = sync };
	queue_event(l->m, &e);
}

/* A hello is said again when the controller wants it. */
static void refused_hello(struct link *l)
{
	struct agent_event e = { .type = AE_NO_ANSWER,
				 .ok = true,
				 .after_us = controller_retry_after_s(l->controller) * 1000000 };
	queue_event(l->m, &e);
}

static void say(struct link *l, int level, const char *fmt, ...) _printf_(3, 4);
static void say(struct link *l, int level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (trouble_say(&l->trouble, text, mo_clock_boot_us()))
		mo_log(level, NULL, NULL, "%s", text);
}

/* One line per new kind of trouble. status 0: nobody answered. */
static void tell_refusal(struct link *l, const char *what, int status, const char *body,
			 const char *error)
{
	const char *url = l->m->config->controller;
	if (status == 401)
		node_token_refused(l->tokens, node_token(l->tokens));
	if (status == 409)
		return;
	if (status == 429)
		say(l, MO_WARNING,
		    "%s takes no %s from this node now: %.600s; steps run on, trying again", url,
		    what, body);
	else if (status == 0 || status == 503)
		say(l, MO_WARNING, "%s does not answer: %s; steps run on, trying again", url,
		    status  ? "it is stopping or starting"
		    : error ? error
			    : "?");
	else if (status == 401)
		say(l, MO_ERR,
		    "%s does not know this node's token (%s): put a join token into token_file: "
		    "`moectl token join`",
		    url, node_token_where(l->tokens));
	else if (status == 403)
		say(l, MO_ERR, "%s refuses this node's token: %.600s", url, body);
	else if (status == 426)
		say(l, MO_ERR,
		    "%s speaks another protocol version than this agent (%d): upgrade the older of "
		    "both",
		    url, MO_PROTOCOL);
	else
		say(l, MO_ERR, "%s answered %s with %d: %.200s", url, what, status, body);
}

/* ---- trade of tokens ---- */

static void say_hello(struct link *l);

/* The answer's token is on disk before it is spoken with: the one before is then of no more use. */
static bool take_token(struct link *l, const char *body, size_t n)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct token_traded got;
	mo_desc_init(&token_traded_desc, &got);
	int r = wire_decode(&token_traded_desc, body, n, false, &got, &err);
	if (r >= 0 && !got.token)
		r = mo_error_set(&err, -EINVAL, "it has no token");
	if (r < 0)
		mo_log(MO_ERR, NULL, NULL, "token: the answer is not understood: %s",
		       mo_error_text(&err, r));
	else if ((r = node_token_keep(l->tokens, got.token)) < 0)
		mo_log(MO_ERR, NULL, NULL,
		       "%s: %s: the new token of this node cannot be kept; free space there",
		       node_token_path(l->tokens), strerror(-r));
	else
		mo_log(MO_NOTICE, NULL, NULL, "this node has a token of its own, %s, kept in %s",
		       got.id ? got.id : "?", node_token_path(l->tokens));
	mo_desc_done(&token_traded_desc, &got);
	return r >= 0;
}

static void on_traded(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct link *l = arg;
	bool waits = l->hello_waits, ok = status == 201 && take_token(l, body, n);
	l->trade = 0;
	l->hello_waits = false;
	/* 429: later, the token is as good as before */
	bool refused = status >= 400 && status < 500 && status != 429;
	if (refused)
		node_token_in_vain(l->tokens, l->traded);
	if (refused && node_token_is_join(l->traded))
		node_token_refused(l->tokens, l->traded);
	if (status != 201 && !refused)
		tell_refusal(l, "the trade of a token", status, body, error);
	if (status == 401 && status != l->trade_status)
		mo_log(MO_ERR, NULL, NULL,
		       "%s does not know the token in token_file, or it has expired: make another: "
		       "`moectl token join`",
		       l->m->config->controller);
	else if (refused && status != l->trade_status)
		mo_log(MO_ERR, NULL, NULL,
		       "%s does not give this node a token of its own (%d): %.600s",
		       l->m->config->controller, status, body);
	l->trade_status = status;
	if (ok)
		l->expiry_logged = false;
	if (waits && ok)
		say_hello(l);
	else if (waits)
		no_answer(l, true);
}

static void trade(struct link *l, const char *token)
{
	const struct token_trade body = { l->m->config->node };
	if (l->trade || mo_clock_boot_us() < l->trade_after)
		return;
	l->trade_after = mo_clock_boot_us() + TRADE_EVERY_US;
	mo_str_set(&l->traded, token);
	l->trade = post_with(l, token, "/v1/agent/token", &token_trade_desc, &body,
			     TRADE_TIMEOUT_MS, on_traded);
}

/* The controller's word about the token that was spoken with. */
static void token_hint(struct link *l, const char *hint)
{
	const char *other;
	if (!hint)
		return;
	if (!mo_streq(hint, "expired")) {
		trade(l, node_token(l->tokens));
		return;
	}
	if (!l->expiry_logged)
		mo_log(MO_ERR, NULL, NULL,
		       "this node's token has expired: steps run on, but no new work comes: put a "
		       "join token into token_file: `moectl token join`");
	l->expiry_logged = true;
	if (l->trade || mo_clock_boot_us() < l->trade_after)
		return;
	node_token_load(l->tokens);
	other = node_token_other(l->tokens);
	if (other)
		trade(l, other);
}

static void on_hello(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct link *l = arg;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	l->hello = 0;
	if (status != 200) {
		if (status == 409)
			say(l, MO_ERR,
			    "%s: another living agent has the name %s: set node: to a name of its "
			    "own (or wait until the other is gone)",
			    l->m->config->controller, l->m->config->node);
		tell_refusal(l, "hello", status, body, error);
		refused_hello(l);
		return;
	}
	struct agent_welcome *w = mo_desc_new(&agent_welcome_desc);
	int r = wire_decode(&agent_welcome_desc, body, n, false, w, &err);
	if (r < 0) {
		mo_log(MO_ERR, NULL, NULL, "hello: the answer is not understood: %s",
		       mo_error_text(&err, r));
		mo_desc_free(&agent_welcome_desc, w);
		no_answer(l, true);
		return;
	}
	trouble_over(&l->trouble);
	token_hint(l, w->token);
	l->orders = w->orders;
	l->pulls = w->pulls;
	l->motion = w->motion;
	l->doubts = w->doubts;
	l->space = w->space;
	l->busy = w->busy;
	l->waits = w->waits;
	l->gpus = w->gpus;
	mo_log(MO_NOTICE, MSG_CONNECTED,
	       &(struct mo_log_where){ .rank = -1, .node = l->m->config->node },
	       "connected to %s as %s, epoch %lld", l->m->config->controller, l->m->config->node,
	       (long long)w->epoch);
	/* says hello again, with what it now knows */
	if (w->info && discovery_missing(l->m->discovery, w->info)) {
		mo_desc_free(&agent_welcome_desc, w);
		return;
	}
	struct agent_event e = { .type = AE_WELCOME, .welcome = w };
	queue_event(l->m, &e);
}

static void on_reply(struct link *l, bool sync, int status, const char *body, size_t n,
		     const char *error)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	if (status != 200) {
		tell_refusal(l, sync ? "sync" : "news", status, body, error);
		no_answer(l, sync);
		return;
	}
	struct sync_reply *r = mo_desc_new(&sync_reply_desc);
	int e = wire_decode(&sync_reply_desc, body, n, false, r, &err);
	if (e < 0) {
		mo_log(MO_ERR, NULL, NULL, "%s: the answer is not understood: %s",
		       sync ? "sync" : "news", mo_error_text(&err, e));
		mo_desc_free(&sync_reply_desc, r);
		no_answer(l, sync);
		return;
	}
	token_hint(l, r->token);
	orders_from_wire(r);
	l->m->end.leaving_sent |= sync ? l->sync_leaving : l->urgent_leaving;
	struct agent_event event = { .type = AE_REPLY, .ok = sync, .reply = r };
	queue_event(l->m, &event);
}

static void on_sync(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct link *l = arg;
	l->sync = 0;
	on_reply(l, true, status, body, n, error);
}

static void on_urgent(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct link *l = arg;
	l->urgent = 0;
	on_reply(l, false, status, body, n, error);
}

static void give_up(struct link *l, uint64_t *id)
{
	if (*id)
		controller_cancel(l->controller, *id);
	*id = 0;
}

static void say_hello(struct link *l)
{
	struct agent_hello h;
	mo_desc_init(&agent_hello_desc, &h);
	agent_core_hello(l->m->core, &h);
	mo_str_set(&h.version, MO_VERSION);
	mo_str_set(&h.address, l->m->config->address);
	mo_desc_copy(&nodeinfo_desc, &h.info, &l->m->info);
	h.health = l->m->watch != NULL;
	h.min_uid = mo_uid() == 0 ? l->m->config->min_uid : MO_NONE;
	h.metrics_port = metrics_port(l->m->metrics);
	l->hello = post(l, "/v1/agent/hello", &agent_hello_desc, &h, HELLO_TIMEOUT_MS, on_hello);
	mo_desc_done(&agent_hello_desc, &h);
	if (!l->hello)
		no_answer(l, true);
}

void link_hello(struct link *l)
{
	give_up(l, &l->hello);
	give_up(l, &l->sync);
	give_up(l, &l->urgent);
	give_up(l, &l->trade);
	l->hello_waits = node_token_is_join(node_token_choose(l->tokens));
	if (!l->hello_waits) {
		say_hello(l);
		return;
	}
	l->trade_after = 0; /* the core decides when hello is tried again */
	trade(l, node_token(l->tokens));
	if (!l->trade)
		no_answer(l, true);
}

/* Controllers of before refuse a key that they do not know. */
static void steps_to_wire(const struct link *l, struct step_report *steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; !l->busy && k < steps[i].n_progress; k++)
			steps[i].progress[k].busy_ms = MO_NONE_F;
		for (size_t k = 0; !l->gpus && k < steps[i].n_motion; k++)
			steps[i].motion[k].gpu_work_ms = steps[i].motion[k].gpu_spin_ms = MO_NONE;
		if (!l->waits)
			mo_str_set(&steps[i].waits, NULL);
	}
}

void link_sync(struct link *l)
{
	struct agent_sync s;
	give_up(l, &l->sync);
	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(l->m->core, &s);
	answers_to_wire(&s, l->orders, l->space);
	steps_to_wire(l, s.steps, s.n_steps);
	watch_sync(l->m->watch, &s);
	s.leaving = l->sync_leaving = l->m->end.leaving;
	s.mono_ns = mo_clock_mono_ns();
	s.pulls = l->pulls && l->m->info.images;
	s.motion = l->motion;
	s.doubts = l->doubts && watch_doubts(l->m->watch);
	l->sync = post(l, "/v1/agent/sync", &agent_sync_desc, &s, SYNC_TIMEOUT_MS, on_sync);
	mo_desc_done(&agent_sync_desc, &s);
	if (!l->sync)
		no_answer(l, true);
}

void link_urgent(struct link *l)
{
	struct agent_sync s;
	give_up(l, &l->urgent);
	mo_desc_init(&agent_sync_desc, &s);
	bool any = agent_core_urgent(l->m->core, &s);
	answers_to_wire(&s, l->orders, l->space);
	s.leaving = l->urgent_leaving = l->m->end.leaving;
	s.pulls = l->pulls && l->m->info.images;
	watch_urgent(l->m->watch, &s);
	s.mono_ns = mo_clock_mono_ns();
	if (any)
		l->urgent = post(l, "/v1/agent/news", &agent_sync_desc, &s, URGENT_TIMEOUT_MS,
				 on_urgent);
	mo_desc_done(&agent_sync_desc, &s);
	if (!l->urgent)
		no_answer(l, false);
}

static void on_answered(void *arg, int status, const char *body, size_t n, const char *error)
{
	if (status != 200)
		/* who asked asks again */
		mo_log(MO_DEBUG, NULL, NULL, "answer to a query: status %d %s", status,
		       error ? error : "");
}

void link_answer(struct link *l, const struct query_answer *a)
{
	post(l, "/v1/agent/answer", &query_answer_desc, a, ANSWER_TIMEOUT_MS, on_answered);
}
