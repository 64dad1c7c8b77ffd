/* Receivers of events that the site names in webhooks.yaml: what they were sent, and what came of
 * it. moed itself connects to nobody; moe-webhook does (daemon/webhook/main.c). */
#pragma once
#include "daemon/core/rules/webhook.h"
#include "daemon/manager.h"

struct webhooks;
/* A file that cannot be used is said in the log, and there are none. */
void webhooks_new(struct manager *m);
/* What is on its way is given up; the next start sends it again. */
struct webhooks *webhooks_free(struct webhooks *s);
/* Sends what is new; at the end of each turn, when its events are durable. */
void webhooks_flush(struct manager *m);

/* One try. */
struct webhook_delivery {
	int64_t time; /* when it began */
	int64_t first, last, events;
	int64_t status; /* of HTTP; MO_NONE: there was no answer, and why: */
	char *error;
	int result; /* enum webhook_result */
	int64_t ms;
	bool test;
};
#define WEBHOOK_DELIVERIES_KEPT 20
struct webhook_view {
	char *name, *host;
	bool is_signed;
	char **types, **jobs;
	size_t n_types, n_jobs;
	int format;
	int64_t next, waiting, failures, due_at;
	int64_t delivered, refused, failed, missed; /* since the start */
	struct webhook_delivery *deliveries;
	size_t n_deliveries;
};
extern const struct mo_desc webhook_delivery_desc, webhook_view_desc;

size_t webhooks_count(const struct manager *m);
/* Of the i-th; borrows all but host, which the caller frees. */
void webhooks_view(const struct manager *m, size_t i, struct webhook_view *ret);
/* Sends a test, whatever else is on its way, and answers r with the delivery once it has ended.
 * -ENOENT: none of that name; -EBUSY: a test of it is on its way. */
int webhooks_test(struct manager *m, const char *name, struct http_request *r);
/* Tries since the start, by enum webhook_result. */
int64_t webhooks_tries(const struct manager *m, int result);
