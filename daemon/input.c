/* See input.h. */
#include "daemon/input.h"
#include "daemon/agent_message.h"

#include "lib/base/assert.h"
#include "lib/loop/loop.h"

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

	core_input_init(&in->core, type);
	if (r) {
		const struct http_caller *caller = http_caller(r);
		in->core.request = (int64_t)http_id(r);
		in->core.by = (struct in_caller){
			.user = mo_strdup(caller->user),
			.via = caller_via(caller, http_peer_address(r)),
			.may_all = caller->role >= ROLE_OPERATOR && caller->role != ROLE_AGENT,
		};
	}
	return in;
}

struct input *input_of_agent(int type, const struct agent_message *msg)
{
	const struct http_caller caller = { .token_id = msg->token_id };
	struct input *in = input_new(type, NULL);

	in->of_agent = true;
	in->core.request = msg->request;
	in->core.by.user = mo_strdup(msg->user);
	in->core.by.via = caller_via(&caller, msg->address);
	return in;
}

void input_free(struct input *in)
{
	mo_desc_done(&core_input_desc, &in->core);
	free(in->answer_text);
	free(in->answer_node);
	free(in);
}

void input_push(struct manager *m, struct input *in)
{
	mo_assert(in->core.type >= 0 && in->core.type < _IN_N);
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
