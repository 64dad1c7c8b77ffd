/* See agent_http.h. */
#include "daemon/agent_http.h"
#include "daemon/agent_message.h"

static void give(struct manager *m, enum agent_word word, struct http_request *r)
{
	struct agent_message msg = { .request = (int64_t)http_id(r),
				     .token_id = http_caller(r)->token_id,
				     .user = http_caller(r)->user,
				     .address = http_peer_address(r) };

	msg.body = http_body(r, &msg.n);
	http_hold(r); /* an answer finds it from now on */
	agent_message(m, word, &msg);
}

void agent_http_hello(void *arg, struct http_request *r)
{
	give(arg, AGENT_HELLO, r);
}

void agent_http_sync(void *arg, struct http_request *r)
{
	give(arg, AGENT_SYNC, r);
}

void agent_http_urgent(void *arg, struct http_request *r)
{
	give(arg, AGENT_URGENT, r);
}

void agent_http_answer(void *arg, struct http_request *r)
{
	give(arg, AGENT_ANSWER, r);
}

void agent_http_road(void *arg, struct http_request *r)
{
	http_road(r);
}

void agent_http_token(void *arg, struct http_request *r)
{
	give(arg, AGENT_TRADE, r);
}
