/* In place of agent/controller.c: the calls of agents. What happens to them on their way is
 * wire.c's; what was answered long ago is heard once more. */
#include "agent/controller.h"

#include <string.h>

#include "lib/model/orders.h"
#include "lib/wire/decode.h"
#include "tests/sim/before.h"
#include "tests/sim/shell.h"
#include "tests/unit/seams/world.h"

struct call {
	int64_t request;
	controller_fn fn;
	void *arg;
};
/* An agent's calls under way: one of each kind, and what it gave up is none. */
struct controller {
	struct shell *shell;
	struct call *calls;
	size_t n_calls;
	int64_t after_s; /* of the answer that is heard */
};

int controller_new(struct manager *m, struct controller **ret, struct mo_error *err)
{
	*ret = mo_alloc(sizeof(**ret));
	(*ret)->shell = shell_of(m);
	shell_of(m)->controller = *ret;
	return 0;
}

struct controller *controller_free(struct controller *c)
{
	free(c->calls);
	free(c);
	return NULL;
}

static bool take(struct controller *c, int64_t request, struct call *ret)
{
	for (size_t i = 0; i < c->n_calls; i++)
		if (c->calls[i].request == request) {
			*ret = c->calls[i];
			memmove(&c->calls[i], &c->calls[i + 1],
				(c->n_calls - i - 1) * sizeof(*c->calls));
			c->n_calls--;
			return true;
		}
	return false;
}

int64_t controller_retry_after_s(const struct controller *c)
{
	return c->after_s;
}

void controller_cancel(struct controller *c, uint64_t id)
{
	struct call given_up;

	take(c, (int64_t)id, &given_up);
}

static char *said(struct sim *s, const struct simnode *n, int kind, const struct mo_buf *json)
{
	if (!n->before || kind == M_TRADE)
		return mo_strndup(json->data, json->len);
	s->fault_counts[F_OLD_WORD]++;
	return before_text(kind == M_HELLO ? &agent_hello_desc : &agent_sync_desc, json->data,
			   json->len);
}

static struct message *message_new(struct sim *s, const struct shell *sh, int kind,
				   const char *token, const struct mo_buf *json)
{
	struct message *m = mo_alloc(sizeof(*m));

	*m = (struct message){ .kind = kind,
			       .node = sh->node,
			       .request = ++s->ctl.request,
			       .instance = shell_node(sh)->instance,
			       .text = said(s, shell_node(sh), kind, json),
			       .token = mo_strdup(token) };
	m->n = strlen(m->text);
	return m;
}

static int kind_of(struct sim *s, const char *path)
{
	static const char *const paths[] = { [M_HELLO] = "/v1/agent/hello",
					     [M_SYNC] = "/v1/agent/sync",
					     [M_URGENT] = "/v1/agent/news",
					     [M_TRADE] = "/v1/agent/token" };

	for (int kind = M_HELLO; kind <= M_TRADE; kind++)
		if (mo_streq(path, paths[kind]))
			return kind;
	sim_violation(s, "an agent says something to %s", path);
}

uint64_t controller_send(struct controller *c, const char *path, const char *token,
			 const struct mo_buf *json, int64_t timeout_ms, controller_fn fn, void *arg)
{
	struct shell *sh = c->shell;
	struct sim *s = sh->sim;

	if (!seam_acts()) /* it died just now */
		return 0;
	struct message *m = message_new(s, sh, kind_of(s, path), token, json);
	token_spoken(shell_node(sh), token);
	struct answer *none = mo_alloc(sizeof(*none));
	int64_t request = m->request;

	*MO_GROW(c->calls, c->n_calls) = (struct call){ request, fn, arg };
	sim_trace(s, "%s sends %lld to %s", shell_node(sh)->name, (long long)request, path);
	*none = (struct answer){
		.kind = m->kind, .node = sh->node, .request = request, .instance = m->instance
	};
	sim_at(s, s->now + timeout_ms * MS, K_ANSWER, sh->node, 0, none, NULL);
	wire_request(s, m);
	return (uint64_t)request;
}

/* Repetition is harmless, says the protocol. */
static void hear_again(struct sim *s, const struct answer *a)
{
	struct sync_reply *reply = mo_desc_new(&sync_reply_desc);
	struct agent_event e = { .type = AE_REPLY, .ok = false, .reply = reply };

	if (wire_decode(&sync_reply_desc, a->text, a->n, false, reply, NULL) == 0) {
		orders_from_wire(reply);
		agent_event(s, a->node, &e);
	}
	mo_desc_free(&sync_reply_desc, reply);
}

static void hear(struct sim *s, const struct answer *a)
{
	struct simnode *n = &s->nodes[a->node];
	struct call call;

	if (a->instance != n->instance || (a->status && n->deaf_until > s->now) ||
	    !take(n->shell->controller, a->request, &call))
		return;
	sim_trace(s, "%s hears the answer to %lld: %d %s", n->name, (long long)a->request,
		  a->status, a->status >= 400 ? a->text : "");
	n->shell->controller->after_s = MO_MAX(a->after_s, 0);
	token_heard(s, a);
	shell_enter(n->shell);
	if (a->status == 201)
		shell_risk(n->shell);
	call.fn(call.arg, a->status, a->text ? a->text : "", a->n,
		a->status ? NULL : "the connection was lost");
	if (a->status == 201)
		token_written(n, seam_dead());
	bool dead = seam_dead();
	seam_alive();
	shell_leave();
	if (dead) {
		shell_die(s, a->node);
		return;
	}
	bool unread = n->shell->m.n_queue == 1 && n->shell->m.queue[0].type == AE_NO_ANSWER;
	if (a->cut && n->shell->m.n_queue && !unread)
		sim_violation(s, "a piece of an answer is taken for one: %s", a->text);
	if (a->status == 200 && !a->cut && unread)
		sim_violation(s, "an agent cannot read its answer: %s", a->text);
	shell_drain(s, a->node);
}

void network_answer(struct sim *s, struct answer *a)
{
	if (s->nodes[a->node].agent && a->old)
		hear_again(s, a);
	else if (s->nodes[a->node].agent)
		hear(s, a);
	answer_free(a);
}
