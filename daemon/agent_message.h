/* Messages of agents: the seam on the way in. Whoever carries them (agent_http.c; a simulator)
 * gives them here whole, after he knows by which token they came; what goes back is
 * agent_answer.h. */
#pragma once
#include "daemon/input.h"

enum agent_word { AGENT_HELLO, AGENT_SYNC, AGENT_URGENT, AGENT_ANSWER, AGENT_TRADE };
/* Borrowed during the call. */
struct agent_message {
	int64_t request;      /* names its answer; never reused */
	const char *token_id; /* of the token that it came with */
	const char *user;     /* whose that token is */
	const char *address;  /* where it came from, numeric; "" = this machine */
	const char *body;     /* JSON */
	size_t n;
};
/* Checks and decodes it, and queues an input for the next turn or refuses it at once. */
void agent_message(struct manager *m, enum agent_word word, const struct agent_message *msg);
