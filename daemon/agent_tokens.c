/* See agent_tokens.h; what follows from a trade is decided in daemon/core/rules/tokens.c. A
 * token is bound to one node. One of no node is accepted on loopback alone, where whoever could
 * steal it could as well read moed's own files: local clusters begin with it, and agents of
 * earlier versions go on with it. */
#include "daemon/agent_tokens.h"
#include <errno.h>
#include <string.h>
#include "daemon/agent_answer.h"
#include "daemon/api.h"
#include "daemon/auth.h"
#include "daemon/core/state/token.h"
#include "lib/base/address.h"
#include "lib/base/parse.h"
#include "lib/model/message.h"
#include "lib/wire/encode.h"

static bool from_loopback(const struct agent_message *msg)
{
	return !*msg->address || mo_address_loopback(msg->address);
}

static bool may_be_unbound(struct manager *m, const struct agent_message *msg,
			   const struct agent_token *t, const char *node)
{
	if (t->node || t->join)
		return true;
	if (token_put_out(manager_state(m), node)) {
		agent_refuse(m, msg->request, 403, MO_NONE,
			     "node %s: its token was revoked, and a token of no node does not "
			     "bring it back: make a join token (`moectl token join`) and put it "
			     "into its token_file",
			     node);
		return false;
	}
	if (from_loopback(msg))
		return true;
	agent_refuse(m, msg->request, 403, MO_NONE,
		     "token %s is bound to no node, and such a token is accepted on loopback only: "
		     "`moectl token join` on the controller makes one with which each agent gets "
		     "its own; put it into token_file",
		     t->id);
	return false;
}

static void first_word(struct manager *m, const struct agent_token *t)
{
	struct input *in = input_new(IN_TOKEN_USED, NULL);

	in->core.token_id = mo_desc_new(&in_token_id_desc);
	in->core.token_id->id = mo_strdup(t->id);
	auth_agent_used(m, t->id);
	input_push(m, in);
}

bool agent_may_begin(struct manager *m, const struct agent_message *msg)
{
	struct agent_token t;

	if (!auth_agent(m, msg->token_id, &t))
		agent_refuse(m, msg->request, 401, MO_NONE, "the token was revoked");
	else if (t.join)
		agent_refuse(m, msg->request, 403, MO_NONE,
			     "this is a join token: it is traded for a node's own with POST "
			     "/v1/agent/token, which agents of this version do; is the agent "
			     "older?");
	else
		return true;
	return false;
}

bool agent_may_speak(struct manager *m, const struct agent_message *msg, const char *node,
		     bool *ret_expired)
{
	struct agent_token t;

	if (!mo_name_valid(node)) {
		agent_refuse(m, msg->request, 422, MO_NONE,
			     "node: not a valid name (letters, digits, . _ - and at most 63)");
		return false;
	}
	if (!agent_may_begin(m, msg) || !auth_agent(m, msg->token_id, &t))
		return false;
	if (!may_be_unbound(m, msg, &t, node))
		return false;
	if (t.node && strcmp(t.node, node) != 0) {
		agent_refuse(m, msg->request, 403, MO_NONE,
			     "this token is for node %s, not for %s: give each node its own "
			     "(`moectl token join`)",
			     t.node, node);
		return false;
	}
	if (t.node && !t.used)
		first_word(m, &t);
	*ret_expired = t.expired;
	return true;
}

const char *agent_token_hint(struct manager *m, const char *token_id)
{
	struct agent_token t;

	if (!auth_agent(m, token_id, &t) || t.join)
		return NULL;
	return t.expired ? "expired" : !t.node ? "unbound" : t.due ? "renew" : NULL;
}

static void trade(struct manager *m, const struct agent_message *msg, const char *node)
{
	struct agent_token t;

	if (!mo_name_valid(node)) {
		agent_refuse(m, msg->request, 422, MO_NONE,
			     "node: not a valid name (letters, digits, . _ - and at most 63)");
		return;
	}
	if (!auth_agent(m, msg->token_id, &t) || t.expired) {
		agent_refuse(m, msg->request, 403, MO_NONE,
			     "the token has expired: make a join token (`moectl token join`) and "
			     "put it into the node's token_file");
		return;
	}
	if (!may_be_unbound(m, msg, &t, node))
		return;

	_cleanup_(mo_freep) char *secret = NULL;
	struct mo_buf doc = { 0 };
	struct input *in = input_of_agent(IN_TOKEN, msg);
	in->core.token = auth_token_new(m, "agent", node, TOKEN_LIFETIME_US, &secret);
	in->core.token->from = mo_strdup(t.id);
	const struct token_traded traded = { in->core.token->id, secret,
					     in->core.token->expires_at };
	wire_encode(&token_traded_desc, &traded, &doc);
	in->answer = ANSWER_TEXT;
	in->answer_text = mo_buf_take(&doc);
	input_push(m, in);
}

void agent_token_trade(struct manager *m, const struct agent_message *msg)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct token_trade body = { 0 };
	int status = api_read(msg->body, msg->n, &token_trade_desc, &body, &err);

	if (status)
		agent_refuse(m, msg->request, status, MO_NONE, "body: %s",
			     mo_error_text(&err, -EINVAL));
	else
		trade(m, msg, body.node);
	mo_desc_done(&token_trade_desc, &body);
}
