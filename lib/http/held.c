/* Requests that are answered later, and streams: by id, and counted for whom they are. */
#include "lib/http/held.h"

#include "lib/base/assert.h"

void held_add(struct http_request *r)
{
	if (r->registered)
		return;
	r->registered = true;
	if (r->client)
		r->client->n_held++;
	HASH_ADD(hh, r->server->held, id, sizeof(r->id), r);
	mo_assert(!r->client || r->client->n_held > 0);
}

void held_remove(struct http_request *r)
{
	mo_assert(r->server && r->id);
	if (!r->registered)
		return;
	HASH_DEL(r->server->held, r);
	if (r->client)
		r->client->n_held--;
}

void http_hold(struct http_request *r)
{
	held_add(r);
}

struct http_request *http_find(struct http_server *s, uint64_t id)
{
	struct http_request *r = NULL;

	if (s)
		HASH_FIND(hh, s->held, &id, sizeof(id), r);
	mo_assert(!r || r->registered);
	return r;
}

int64_t http_held_of_caller(const struct http_request *r)
{
	return r->client ? r->client->n_held : 0;
}
