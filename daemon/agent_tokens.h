/* What an agent may say with the token that it says it with, and the trade of tokens (POST
 * /v1/agent/token). */
#pragma once
#include "daemon/manager.h"

/* Whether the request's token speaks for nodes at all, before its body is looked at; a problem
 * was sent otherwise. */
bool agent_may_begin(struct manager *m, struct http_request *r);
/* Whether the request may speak for the node; a problem was sent otherwise. *ret_expired: its
 * token has expired, it gets no new work. */
bool agent_may_speak(struct manager *m, struct http_request *r, const char *node,
		     bool *ret_expired);
/* What the agent is to do about its token (message.h), NULL nothing. */
const char *agent_token_hint(struct manager *m, struct http_request *r);
