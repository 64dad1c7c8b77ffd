/* See api_webhooks.h. Neither a secret nor the path of a URL, which is one in chat systems, is in
 * any answer. */
#include "daemon/api_webhooks.h"

#include <errno.h>

#include "daemon/api.h"
#include "daemon/webhooks.h"

void api_webhooks_list(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const char *after = http_query(r, "after");
	_cleanup_(list_done) struct list l = { 0 };
	bool started = !after;

	if (!list_start(r, &l))
		return;
	for (size_t i = 0; i < webhooks_count(m); i++) {
		struct webhook_view v;
		bool skip = !started;

		webhooks_view(m, i, &v);
		_cleanup_(mo_freep) char *host = v.host;

		started |= after && mo_streq(v.name, after);
		if (skip)
			continue;
		if (!list_room(&l))
			break;
		list_add(&l, &webhook_view_desc, &v, v.name);
	}
	list_send(r, &l);
}

void api_webhooks_test(void *arg, struct http_request *r)
{
	const char *name = http_param(r, "name");
	int e = webhooks_test(arg, name, r);

	if (e == -ENOENT)
		http_problem(r, 404,
			     "webhook %.63s: there is none; `moectl webhooks` lists those of "
			     "moed's "
			     "webhooks file as it was at its start",
			     name);
	else if (e == -EBUSY)
		http_problem(r, 409, "webhook %.63s: a test of it is on its way: wait for its end",
			     name);
}
