/* See controller.h. */
#include "agent/controller.h"
#include <string.h>
#include "lib/base/log.h"
#include "lib/loop/http_client.h"

struct controller {
	const struct agent_config *config;
	struct mo_http *http;
};

int controller_new(struct manager *m, struct controller **ret, struct mo_error *err)
{
	struct controller *c = mo_alloc(sizeof(*c));

	c->config = m->config;
	int r = mo_http_new(m->loop, &c->http, err);
	if (r < 0)
		free(c);
	else
		*ret = c;
	return r;
}

struct controller *controller_free(struct controller *c)
{
	if (!c)
		return NULL;
	mo_http_free(c->http);
	free(c);
	return NULL;
}

uint64_t controller_send(struct controller *c, const char *path, const char *token,
			 const struct mo_buf *json, int64_t timeout_ms, controller_fn fn, void *arg)
{
	const struct mo_http_call call = {
		.url = c->config->controller,
		.path = path,
		.method = "POST",
		.body = json->data,
		.body_len = json->len,
		.token = token,
		.content_type = "application/json",
		.timeout_ms = timeout_ms,
		.max_body = MO_AGENT_BODY_BYTES_MAX,
		.ca_file = c->config->ca_file,
	};
	uint64_t id = 0;
	int r = mo_http_send(c->http, &call, fn, arg, &id);

	if (r < 0)
		mo_log(MO_ERR, NULL, NULL, "%s%s: %s", call.url, path, strerror(-r));
	return r < 0 ? 0 : id;
}

int64_t controller_retry_after_s(const struct controller *c)
{
	return mo_http_retry_after_s(c->http);
}

void controller_cancel(struct controller *c, uint64_t id)
{
	mo_http_cancel(c->http, id);
}
