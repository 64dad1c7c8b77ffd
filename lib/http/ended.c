/* What is held or streamed and has nobody left to have it: its token ended, or its client has gone.
 * It ends, and its owner is notified. */
#include <poll.h>
#include "lib/http/ended.h"
#include "lib/http/reply.h"
#include "lib/http/road.h"

bool ended_token(const struct http_request *r)
{
	const struct http_server_config *c = &r->server->config;

	return r->caller.token_id && c->alive && !c->alive(c->arg, r->caller.token_id);
}

static void let_go(struct http_request *r, const char *detail)
{
	void (*gone)(void *, uint64_t) = r->gone;

	r->gone = NULL;
	if (gone)
		gone(r->gone_arg, r->id);
	if (!r->answered) {
		reply_refuse(r, detail);
		return;
	}
	/* Not a byte more, also not of what waits to be sent. */
	mo_buf_reset(&r->backlog);
	r->backlog_start = 0;
	http_stream_end(r);
}

/* A connection whose request is held is not read: without this, who leaves while nothing is written
 * to him would be counted, and asked for at an agent, for as long as that is silent; an admin too.
 * Agents end what they wait for by their next request. */
void ended_clients(struct http_server *s)
{
	struct http_request *r, *tmp;

	HASH_ITER(hh, s->held, r, tmp) {
		struct pollfd p = { .fd = r->connection->fd, .events = POLLRDHUP };

		if (r->caller.role != ROLE_AGENT && !r->stream_ended &&
		    (r->stream || !r->answered) && poll(&p, 1, 0) == 1 &&
		    p.revents & (POLLRDHUP | POLLHUP | POLLERR))
			let_go(r, "the client has gone");
	}
}

void http_server_check_tokens(struct http_server *s)
{
	struct http_request *r, *tmp;

	HASH_ITER(hh, s->held, r, tmp)
		if (!r->stream_ended && (r->stream || !r->answered) && ended_token(r))
			let_go(r, "the token of this request has ended");
	roads_end(s, ended_token);
}
