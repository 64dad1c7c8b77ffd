/* See agent_answer.h. */
#include "daemon/agent_answer.h"
#include <stdarg.h>
#include "daemon/api.h"

void agent_answer(struct manager *m, int64_t request, int status, const struct mo_buf *json)
{
	struct http_request *r = http_find(m->http, (uint64_t)request);

	if (r)
		api_send(r, status, json);
}

void agent_refuse(struct manager *m, int64_t request, int status, int64_t after_s, const char *fmt,
		  ...)
{
	struct http_request *r = http_find(m->http, (uint64_t)request);
	va_list ap;

	if (!r)
		return;
	va_start(ap, fmt);
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	va_end(ap);
	if (after_s == MO_NONE)
		http_problem(r, status, "%s", text);
	else
		http_problem_later(r, status, after_s, "%s", text);
}

const char *agent_waits(struct manager *m, int64_t request)
{
	const struct http_request *r = http_find(m->http, (uint64_t)request);

	return r ? http_caller(r)->token_id : NULL;
}
