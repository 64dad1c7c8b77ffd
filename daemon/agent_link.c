/* Messages of agents become inputs; their syncs are held here until a command is due or the beat
 * has passed. One link per node name.
 *   hello -> IN_HELLO -> FX_WELCOME, or FX_REPLY with the refusal
 *   sync  -> IN_SYNC -> FX_HOLD, and FX_WAKE or the beat's timer answers with core_sync_reply();
 *         FX_REPLY refuses (409: say hello again)
 *   news  -> IN_URGENT -> FX_ACK: acknowledgements only, after the records are synced
 * All holds last equally long, so the list of held syncs is in the order of their ends and one
 * timer suffices. Questions (logs) are not part of the core: they ride on one sync reply each. A
 * message speaks only for the node of its token (agent_tokens.c). */
#include "daemon/agent_link.h"
#include <errno.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>
#include "daemon/agent_answer.h"
#include "daemon/agent_message.h"
#include "daemon/agent_tokens.h"
#include "daemon/core/rules/acks.h"
#include "daemon/core/rules/intake.h"
#include "lib/base/desc_fit.h"
#include "lib/loop/loop.h"
#include "lib/model/message.h"
#include "lib/model/orders.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define QUERY_TIMEOUT_US (10 * 1000000LL)
#define IMAGE_TIMEOUT_US (30 * 1000000LL) /* above the patience of the node */
/* Beats that end within so small a part of a beat are answered together: MHD goes through all
 * connections that are held whenever it resumes one, or many. */
#define TOGETHER_PART 20
#define UNFIT_REPORTED_EVERY_US (60 * 1000000LL)

struct link {
	char *node;
	int64_t held;   /* request of the held sync, 0 none */
	char *instance; /* of the agent that sent it */
	int64_t held_until;
	struct link *prev, *next; /* links->holding, while held */
	UT_hash_handle hh;
};
struct links {
	struct manager *manager;
	struct link *all;     /* by node */
	struct link *holding; /* first ends first */
	struct questions *questions;
	/* boot us: till then no more is logged of values that cannot be stored */
	int64_t unfit_until;
	struct mo_timer *timer;
};

static struct link *link_get(struct links *l, const char *node)
{
	struct link *k = NULL;

	HASH_FIND_STR(l->all, node, k);
	if (!k) {
		k = mo_alloc(sizeof(*k));
		k->node = mo_strdup(node);
		HASH_ADD_KEYPTR(hh, l->all, k->node, strlen(k->node), k);
	}
	return k;
}

static void set_timer(struct links *l)
{
	mo_timer_at(l->timer, l->holding ? l->holding->held_until : INT64_MAX);
}

static void unhold(struct links *l, struct link *k)
{
	if (!k->held)
		return;
	k->held = 0;
	DL_DELETE(l->holding, k);
}

static void send_doc(struct manager *m, int64_t request, const struct mo_desc *d, const void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(d, obj, &b);
	agent_answer(m, request, 200, &b);
}

/* token_id: of who waits for it */
static void send_reply(struct links *l, int64_t request, const char *token_id,
		       struct sync_reply *reply)
{
	orders_to_wire(reply);
	reply->token = mo_strdup(agent_token_hint(l->manager, token_id));
	send_doc(l->manager, request, &sync_reply_desc, reply);
}

static void answer_held(struct links *l, struct link *k)
{
	struct manager *m = l->manager;
	int64_t request = k->held;
	const char *token_id = agent_waits(m, request);
	struct sync_reply reply;

	unhold(l, k);
	if (!token_id)
		return;
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(m->core, k->node, &reply);
	questions_send(l->questions, k->node, manager_state(m)->epoch, &reply);
	send_reply(l, request, token_id, &reply);
	mo_desc_done(&sync_reply_desc, &reply);
}

/* Another sync came of the same name. The connection of the one before is most likely dead; what
 * it would have said, the new one says. One of another instance gets no orders: they
 * are not its own. */
static void displace(struct links *l, struct link *k, const char *instance)
{
	struct manager *m = l->manager;
	int64_t request = k->held;
	const char *token_id = agent_waits(m, request);
	struct sync_reply reply;

	unhold(l, k);
	if (!token_id)
		return;
	mo_desc_init(&sync_reply_desc, &reply);
	if (mo_streq(k->instance, instance))
		core_sync_reply(m->core, k->node, &reply);
	else
		reply.epoch = manager_state(m)->epoch;
	send_reply(l, request, token_id, &reply);
	mo_desc_done(&sync_reply_desc, &reply);
}

static void on_beat(void *arg)
{
	struct links *l = arg;
	int64_t until = mo_clock_boot_us() + l->manager->options->beat_ms * 1000 / TOGETHER_PART;

	while (l->holding && l->holding->held_until <= until)
		answer_held(l, l->holding);
	set_timer(l);
}

void links_new(struct manager *m)
{
	struct links *l = mo_alloc(sizeof(*l));

	l->manager = m;
	m->links = l;
	l->questions = questions_new(m->loop);
	if (mo_timer_new(m->loop, on_beat, l, &l->timer) < 0)
		abort();
}

struct links *links_free(struct links *l)
{
	struct link *k, *tmp;

	if (!l)
		return NULL;
	questions_free(l->questions);
	HASH_ITER(hh, l->all, k, tmp) {
		HASH_DEL(l->all, k);
		free(k->node);
		free(k->instance);
		free(k);
	}
	mo_timer_free(l->timer);
	free(l);
	return NULL;
}

static void send_now(struct links *l, struct link *k)
{
	if (!k->held)
		return;
	answer_held(l, k);
	set_timer(l);
}

void link_hold(struct manager *m, int64_t request, const char *node, const char *instance)
{
	struct links *l = m->links;
	struct link *k = link_get(l, node);

	if (k->held)
		displace(l, k, instance);
	k->held = request;
	mo_str_set(&k->instance, instance);
	k->held_until = mo_clock_boot_us() + m->options->beat_ms * 1000;
	DL_APPEND(l->holding, k);
	if (questions_wait(l->questions, node))
		answer_held(l, k);
	set_timer(l);
}

void link_wake(struct manager *m, const char *node)
{
	struct link *k = NULL;

	HASH_FIND_STR(m->links->all, node, k);
	if (k)
		send_now(m->links, k);
}

void link_welcome(struct manager *m, int64_t request, const char *node,
		  struct agent_welcome *welcome)
{
	const char *token_id = agent_waits(m, request);

	if (token_id) {
		mo_str_set(&welcome->token, agent_token_hint(m, token_id));
		welcome->orders = welcome->pulls = welcome->space = welcome->motion =
			welcome->busy = welcome->doubts = welcome->waits = welcome->recorder =
				welcome->activity = welcome->gpus = true;
		send_doc(m, request, &agent_welcome_desc, welcome);
	}
	questions_again(m->links->questions, node);
}

void link_ack(struct manager *m, int64_t request, const char *node)
{
	struct sync_reply reply;

	if (!agent_waits(m, request))
		return;
	mo_desc_init(&sync_reply_desc, &reply);
	core_acks(m->core, node, &reply);
	send_doc(m, request, &sync_reply_desc, &reply);
	mo_desc_done(&sync_reply_desc, &reply);
}

int64_t link_query(struct manager *m, const char *node, const struct command *c, link_answer_fn fn,
		   void *arg)
{
	struct command *q = question_new(m->links->questions, manager_state(m)->epoch, node,
					 c->wait_ms * 1000 + QUERY_TIMEOUT_US, fn, arg, false);
	int64_t id = q->query;

	q->job = c->job;
	q->attempt = c->attempt;
	q->rank = c->rank;
	q->offset = c->offset;
	q->lines = c->lines;
	q->wait_ms = c->wait_ms;
	q->since_ms = c->since_ms;
	q->what = c->since_ms == MO_NONE ? NULL : mo_strdup(LOG_SINCE_WHAT);
	link_wake(m, node);
	return id;
}

void link_query_env(struct manager *m, const char *node, int64_t job, int64_t attempt,
		    link_answer_fn fn, void *arg)
{
	struct command *c = question_new(m->links->questions, manager_state(m)->epoch, node,
					 LINK_ENV_TIMEOUT_US, fn, arg, true);

	c->job = job;
	c->attempt = attempt;
	c->what = mo_strdup("env");
	link_wake(m, node);
}

void link_query_exec(struct manager *m, const char *node, const struct command *c,
		     int64_t timeout_ms, link_answer_fn fn, void *arg)
{
	struct command *q = question_new(m->links->questions, manager_state(m)->epoch, node,
					 timeout_ms * 1000, fn, arg, false);

	q->job = c->job;
	q->attempt = c->attempt;
	q->rank = c->rank;
	q->wait_ms = c->wait_ms;
	q->what = mo_strdup(c->what);
	for (size_t i = 0; i < c->n_argv; i++)
		mo_strs_add(&q->argv, &q->n_argv, c->argv[i]);
	link_wake(m, node);
}

void link_query_image(struct manager *m, const char *node, const struct command *c,
		      link_answer_fn fn, void *arg)
{
	struct command *q = question_new(m->links->questions, manager_state(m)->epoch, node,
					 IMAGE_TIMEOUT_US, fn, arg, true);

	q->what = mo_strdup(c->what);
	q->dir = mo_strdup(c->dir);
	q->user = mo_strdup(c->user);
	q->allow_root = c->allow_root;
	link_wake(m, node);
}

void link_query_cancel(struct manager *m, int64_t id)
{
	question_cancel(m->links->questions, id);
}

static void *decode(struct manager *m, const struct agent_message *msg, const struct mo_desc *d)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (!agent_may_begin(m, msg))
		return NULL;

	void *obj = mo_desc_new(d);
	int e = wire_affordable(msg->body, msg->n, &err);

	if (e >= 0)
		e = wire_decode(d, msg->body, msg->n, true, obj, &err);
	if (e >= 0)
		return obj;
	agent_refuse(m, msg->request, e == -E2BIG ? 413 : 400, MO_NONE,
		     "body: %s: do agent and controller have versions that fit?",
		     mo_error_text(&err, e));
	mo_desc_free(d, obj);
	return NULL;
}

/* false after 422 was sent. why: taken, NULL = nothing is wrong. */
static bool taken_in(struct manager *m, const struct agent_message *msg, char *why)
{
	if (why)
		agent_refuse(m, msg->request, 422, MO_NONE,
			     "%s; do agent and controller have versions that fit?", why);
	free(why);
	return !why;
}

void link_on_hello(struct manager *m, const struct agent_message *msg)
{
	struct agent_hello *hello = decode(m, msg, &agent_hello_desc);

	if (!hello)
		return;
	bool expired = false;
	if (!agent_may_speak(m, msg, hello->node, &expired) ||
	    !taken_in(m, msg, intake_hello(hello))) {
		mo_desc_free(&agent_hello_desc, hello);
		return;
	}
	if (!hello->address || !*hello->address)
		mo_str_set(&hello->address, *msg->address ? msg->address : "127.0.0.1");
	struct input *in = input_of_agent(IN_HELLO, msg);
	in->core.hello = mo_desc_new(&in_hello_desc);
	*in->core.hello = (struct in_hello){ .message = hello, .token_expired = expired };
	input_push(m, in);
}

static void tell_unfit(struct links *l, const char *node, const char *place)
{
	int64_t now = mo_clock_boot_us();

	if (!place || l->unfit_until > now)
		return;
	l->unfit_until = now + UNFIT_REPORTED_EVERY_US;
	mo_log(MO_WARNING, NULL, NULL,
	       "agent %s: %s: it counts as unknown (texts are cut), the rest is kept", node, place);
}

void link_on_sync(struct manager *m, const struct agent_message *msg, int type)
{
	struct agent_sync *sync = decode(m, msg, &agent_sync_desc);
	_cleanup_(mo_freep) char *unfit = NULL;

	if (!sync)
		return;
	bool expired = false;
	if (!agent_may_speak(m, msg, sync->node, &expired) ||
	    !taken_in(m, msg, intake_sync(sync, &unfit))) {
		mo_desc_free(&agent_sync_desc, sync);
		return;
	}
	tell_unfit(m->links, sync->node, unfit);
	intake_portion(sync);
	answers_from_wire(sync);
	struct input *in = input_of_agent(type, msg);
	in->core.sync = mo_desc_new(&in_sync_desc);
	*in->core.sync = (struct in_sync){ .message = sync, .token_expired = expired };
	input_push(m, in);
}

bool link_on_answer(struct manager *m, const struct agent_message *msg)
{
	struct query_answer *answer = decode(m, msg, &query_answer_desc);
	bool asked = false, expired;

	if (!answer)
		return false;
	mo_desc_fit(&query_answer_desc, answer);
	if (agent_may_speak(m, msg, answer->node, &expired)) {
		agent_answer(m, msg->request, 200,
			     &(struct mo_buf){ .data = (char *)"{}", .len = 2 });
		asked = question_answered(m->links->questions, answer);
	}
	mo_desc_free(&query_answer_desc, answer);
	return asked;
}
