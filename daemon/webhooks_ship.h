/* Batches of events on their way to receivers: one at a time of each webhook, and one test. Part of
 * webhooks.h, which alone calls it. */
#pragma once
#include "daemon/webhooks.h"
#include "lib/model/webhook.h"

struct hook;
/* One that is on its way; errand NULL: none. */
struct shipment {
	struct hook *hook;
	struct errand *errand;
	struct webhook_delivery delivery;
	int64_t next, missed; /* as of its batch */
	int64_t began;        /* CLOCK_BOOTTIME us */
	uint64_t request;     /* who asked for a test */
};
struct hook {
	struct webhooks *owner;
	const struct webhook *config;
	struct webhook_pace pace;
	struct shipment events, test;
	struct webhook_delivery *deliveries; /* the newest last */
	size_t n_deliveries;
	int64_t tries[_WEBHOOK_RESULT_N], missed;
};
struct webhooks {
	struct manager *manager;
	struct webhooks_file file;
	struct hook *hooks;                      /* one for each of the file */
	int64_t tries_before[_WEBHOOK_RESULT_N]; /* of files before this one */
	struct mo_timer *timer;
};

/* Sends what is due to it, unless something is on its way, and sets the timer. */
void webhook_send_next(struct hook *h);
/* Sends the batch, which is copied. p->errand is NULL before, and after what ended at once. */
void webhook_ship(struct shipment *p, const struct webhook_batch *batch, bool test);
/* How far each is, into STATE/webhooks.sent. */
void webhooks_keep_sent(const struct webhooks *s);
