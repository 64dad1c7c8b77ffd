/* Receivers of events that the site names in webhooks.yaml: what they were sent, and what came of
 * it. moed itself connects to nobody; moe-webhook does (daemon/webhook/main.c). */
#pragma once
#include "daemon/core/rules/webhook.h"
#include "daemon/manager.h"
#include "daemon/webhook_view.h"

struct webhooks;
/* A file that cannot be used is said in the log, and there are none. */
void webhooks_new(struct manager *m);
/* The file, read anew: who has a name of before goes on where that one was. A file that cannot be
 * used is said in the log, and changes nothing. */
void webhooks_reload(struct manager *m);
/* What is on its way is given up; the next start sends it again. */
struct webhooks *webhooks_free(struct webhooks *s);
/* Sends what is new; at the end of each turn, when its events are durable. */
void webhooks_flush(struct manager *m);

size_t webhooks_count(const struct manager *m);
/* Of the i-th; borrows all but host, which the caller frees. */
void webhooks_view(const struct manager *m, size_t i, struct webhook_view *ret);
/* Sends a test, whatever else is on its way, and answers r with the delivery once it has ended.
 * -ENOENT: none of that name; -EBUSY: a test of it is on its way. */
int webhooks_test(struct manager *m, const char *name, struct http_request *r);
/* Tries since the start, by enum webhook_result. */
int64_t webhooks_tries(const struct manager *m, int result);
