/* See agent_message.h. What each message costs is counted for the node of its token (quota.h). */
#include "daemon/agent_message.h"
#include "daemon/agent_link.h"
#include "daemon/agent_tokens.h"
#include "daemon/quota.h"

/* False: it is paid by somebody else. */
static bool take(struct manager *m, enum agent_word word, const struct agent_message *msg)
{
	switch (word) {
	case AGENT_HELLO: link_on_hello(m, msg); break;
	case AGENT_SYNC: link_on_sync(m, msg, IN_SYNC); break;
	case AGENT_URGENT: link_on_sync(m, msg, IN_URGENT); break;
	case AGENT_TRADE: agent_token_trade(m, msg); break;
	/* What was asked for is paid by who reads: he has a limit of his own. */
	case AGENT_ANSWER: return !link_on_answer(m, msg);
	}
	return true;
}

void agent_message(struct manager *m, enum agent_word word, const struct agent_message *msg)
{
	struct quota_message q;

	quota_begin(m, msg->token_id, msg->n, &q);
	if (take(m, word, msg))
		quota_end(m, &q);
}
