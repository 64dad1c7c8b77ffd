/* See agent_tokens.h; what follows from a trade is decided in daemon/core/rules/tokens.c. A
 * token is bound to one node. One of no node is accepted on loopback alone, where whoever could
 * steal it could as well read moed's own files: local clusters begin with it, and agents of
 * earlier versions go on with it. */
#include "daemon/agent_tokens.h"
#include <string.h>
#include "daemon/api.h"
#include "daemon/auth.h"
#include "daemon/core/state/token.h"
#include "daemon/input.h"
#include "daemon/quota.h"
#include "lib/base/address.h"
#include "lib/base/parse.h"
#include "lib/model/message.h"

static bool from_loopback(const struct http_request *r)
{
	const char *address = http_peer_address(r);

	return !*address || mo_address_loopback(address);
}

static bool may_be_unbound(struct manager *m, struct http_request *r, const struct agent_token *t,
			   const char *node)
{
	if (t->node || t->join)
		return true;
	if (token_put_out(manager_state(m), node)) {
		http_problem(r, 403,
			     "node %s: its token was revoked, and a token of no node does not "
			     "bring it back: make a join token (`moectl token join`) and put it "
			     "into its token_file",
			     node);
		return false;
	}
	if (from_loopback(r))
		return true;
	http_problem(r, 403,
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

bool agent_may_begin(struct manager *m, struct http_request *r)
{
	struct agent_token t;

	if (!auth_agent(m, http_caller(r)->token_id, &t))
		http_problem(r, 401, "the token was revoked");
	else if (t.join)
		http_problem(r, 403,
			     "this is a join token: it is traded for a node's own with POST "
			     "/v1/agent/token, which agents of this version do; is the agent "
			     "older?");
	else
		return true;
	return false;
}

bool agent_may_speak(struct manager *m, struct http_request *r, const char *node, bool *ret_expired)
{
	struct agent_token t;

	if (!mo_name_valid(node)) {
		http_problem(r, 422,
			     "node: not a valid name (letters, digits, . _ - and at most 63)");
		return false;
	}
	if (!agent_may_begin(m, r) || !auth_agent(m, http_caller(r)->token_id, &t))
		return false;
	if (!may_be_unbound(m, r, &t, node))
		return false;
	if (t.node && strcmp(t.node, node) != 0) {
		http_problem(r, 403,
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

const char *agent_token_hint(struct manager *m, struct http_request *r)
{
	struct agent_token t;

	if (!auth_agent(m, http_caller(r)->token_id, &t) || t.join)
		return NULL;
	return t.expired ? "expired" : !t.node ? "unbound" : t.due ? "renew" : NULL;
}

static void trade(struct manager *m, struct http_request *r, const char *node)
{
	struct agent_token t;

	if (!mo_name_valid(node)) {
		http_problem(r, 422,
			     "node: not a valid name (letters, digits, . _ - and at most 63)");
		return;
	}
	if (!auth_agent(m, http_caller(r)->token_id, &t) || t.expired) {
		http_problem(r, 403,
			     "the token has expired: make a join token (`moectl token join`) and "
			     "put it into the node's token_file");
		return;
	}
	if (!may_be_unbound(m, r, &t, node))
		return;

	_cleanup_(mo_freep) char *secret = NULL;
	struct mo_buf doc = { 0 };
	struct input *in = input_new(IN_TOKEN, r);
	in->core.token = auth_token_new(m, "agent", node, TOKEN_LIFETIME_US, &secret);
	in->core.token->from = mo_strdup(t.id);
	const struct token_traded traded = { in->core.token->id, secret,
					     in->core.token->expires_at };
	wire_encode(&token_traded_desc, &traded, &doc);
	in->answer = ANSWER_TEXT;
	in->answer_text = mo_buf_take(&doc);
	input_push(m, in);
}

void agent_token_trade(void *arg, struct http_request *r)
{
	struct token_trade body = { 0 };
	struct quota_message q;

	quota_begin(arg, r, &q);
	if (api_body(r, &token_trade_desc, &body))
		trade(arg, r, body.node);
	mo_desc_done(&token_trade_desc, &body);
	quota_end(arg, &q);
}
