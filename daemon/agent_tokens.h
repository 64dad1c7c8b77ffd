/* What an agent may say with the token that it says it with, and the trade of tokens (POST
 * /v1/agent/token). */
#pragma once
#include "daemon/agent_message.h"

/* Whether the message's token speaks for nodes at all, before its body is read; a problem
 * was sent otherwise. */
bool agent_may_begin(struct manager *m, const struct agent_message *msg);
/* Whether it may speak for the node; a problem was sent otherwise. *ret_expired: its
 * token has expired, it gets no new work. */
bool agent_may_speak(struct manager *m, const struct agent_message *msg, const char *node,
		     bool *ret_expired);
/* What the agent that has this token is to do about it (message.h), NULL nothing. */
const char *agent_token_hint(struct manager *m, const char *token_id);
void agent_token_trade(struct manager *m, const struct agent_message *msg);
