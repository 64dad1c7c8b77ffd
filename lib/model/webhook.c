/* See webhook.h. */
#include "lib/model/webhook.h"

#include <string.h>

#include "lib/base/buf.h"

const char *const webhook_format_names[] = { "events", "text", "content" };
_Static_assert(ELEMENTSOF(webhook_format_names) == _WEBHOOK_FORMAT_N, "a name for each");

static const struct mo_field webhook_fields[] = {
	MO_D(webhook, name, MO_STR, "of the webhook"),
	MO_D(webhook, url, MO_STR, "where events are posted"),
	MO_D(webhook, secret, MO_STR, "key of the signature"),
	MO_D(webhook, ca_file, MO_STR, "certificates that the receiver's is checked by"),
	MO_D_LIST(webhook, types, MO_STRS, "patterns of event types"),
	MO_D_LIST(webhook, jobs, MO_STRS, "patterns of names of jobs"),
	MO_D_ENUM(webhook, format, webhook_format_names, "what is posted"),
};
const struct mo_desc webhook_desc = MO_DESC(webhook, webhook_fields);

static const struct mo_field webhooks_file_fields[] = {
	MO_D_VEC(webhooks_file, webhooks, &webhook_desc, "those of the site"),
};
const struct mo_desc webhooks_file_desc = MO_DESC(webhooks_file, webhooks_file_fields);

static const struct mo_field webhook_order_fields[] = {
	MO_D(webhook_order, url, MO_STR, "where it is posted"),
	MO_D(webhook_order, secret, MO_STR, "key of the signature", .omit = true),
	MO_D(webhook_order, ca_file, MO_STR, "certificates to check by", .omit = true),
	MO_D(webhook_order, body, MO_STR, "what is posted", .max = UINT32_MAX),
	MO_D(webhook_order, timeout_ms, MO_INT, "milliseconds for all of it"),
};
const struct mo_desc webhook_order_desc = MO_DESC(webhook_order, webhook_order_fields);

static const struct mo_field webhook_answer_fields[] = {
	MO_D(webhook_answer, status, MO_INT, "of the answer"),
	MO_D(webhook_answer, error, MO_STR, "why there is none", .omit = true),
};
const struct mo_desc webhook_answer_desc = MO_DESC(webhook_answer, webhook_answer_fields);

char *webhook_host(const char *url)
{
	const char *host = strstr(url, "://");
	size_t n = host ? (size_t)(host - url) + 3 : 0;

	return mo_strndup(url, n + strcspn(url + n, "/?#"));
}
