/* See input.h. */
#include "daemon/input.h"
#include "daemon/agent_message.h"

#include "lib/base/assert.h"

char *caller_via(const struct http_caller *c, const char *address)
{
	const char *from = *address ? " from " : "";

	if (!c->token_id)
		return mo_strdup("socket");
	return mo_printf("%s %s%s%s", c->by_cookie ? "session of token" : "token", c->token_id,
			 from, address);
}

struct input *input_new(int type, struct http_request *r)
{
	struct input *in = mo_alloc(sizeof(*in));

	in->event.type = type;
	in->event.job = in->event.value = MO_NONE;
	if (r) {
		const struct http_caller *caller = http_caller(r);
		in->event.request = (int64_t)http_id(r);
		in->user = mo_strdup(caller->user);
		in->via = caller_via(caller, http_peer_address(r));
		in->event.may_all = caller->role >= ROLE_OPERATOR && caller->role != ROLE_AGENT;
	}
	return in;
}

struct input *input_of_agent(int type, const struct agent_message *msg)
{
	const struct http_caller caller = { .token_id = msg->token_id };
	struct input *in = input_new(type, NULL);

	in->of_agent = true;
	in->event.request = msg->request;
	in->user = mo_strdup(msg->user);
	in->via = caller_via(&caller, msg->address);
	return in;
}

void input_free(struct input *in)
{
	free(in->answer_text);
	free(in->node);
	free(in->text);
	free(in->when);
	free(in->user);
	free(in->via);
	mo_desc_free(&submit_desc, in->submit);
	mo_desc_free(&agent_hello_desc, in->hello);
	mo_desc_free(&agent_sync_desc, in->sync);
	mo_desc_free(&token_desc, in->token);
	mo_desc_free(&config_read_desc, in->config);
	free(in);
}

void input_push(struct manager *m, struct input *in)
{
	struct core_event *e = &in->event;

	mo_assert(in->event.type >= 0 && in->event.type < _EV_N);
	e->node = in->node;
	e->text = in->text;
	e->when = in->when;
	e->user = in->user;
	e->via = in->via;
	e->submit = in->submit;
	e->config = in->config;
	e->hello = in->hello;
	e->sync = in->sync;
	e->token = in->token;
	*MO_GROW(m->inputs, m->n_inputs) = in;
	mo_turn_arm(m->turn);
}

void inputs_done(struct manager *m)
{
	for (size_t i = 0; i < m->n_inputs; i++)
		input_free(m->inputs[i]);
	free(m->inputs);
	m->inputs = NULL;
	m->n_inputs = 0;
}
