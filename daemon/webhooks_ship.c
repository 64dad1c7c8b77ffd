/* See webhooks_ship.h. */
#include "daemon/webhooks_ship.h"

#include <errno.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/errand.h"
#include "daemon/webhook_body.h"
#include "daemon/webhooks_sent.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define TIMEOUT_MS 10000
#define ERRAND_US (15 * 1000000LL) /* beyond that of its request */
#define ANSWER_MAX 65536

void webhooks_keep_sent(const struct webhooks *s)
{
	_cleanup_(webhooks_sent_done) struct webhooks_sent all;

	mo_desc_init(&webhooks_sent_desc, &all);
	for (size_t i = 0; i < s->file.n_webhooks; i++) {
		struct webhook_sent *one = MO_ADD(&all, items, &webhook_sent_desc);

		one->name = mo_strdup(s->hooks[i].config->name);
		one->next = s->hooks[i].pace.next;
	}
	webhooks_sent_write(s->manager->options->state_dir, &all);
}

static void keep_delivery(struct hook *h, const struct webhook_delivery *d)
{
	if (h->n_deliveries == WEBHOOK_DELIVERIES_KEPT)
		mo_vec_remove(&webhook_delivery_desc, h->deliveries, &h->n_deliveries, 0);
	struct webhook_delivery *kept = MO_ADD(h, deliveries, &webhook_delivery_desc);

	*kept = *d;
	kept->error = mo_strdup(d->error);
}

/* Once for each streak: what is tried for hours would fill the log. */
static void log_result(const struct hook *h, const struct webhook_delivery *d)
{
	_cleanup_(mo_freep) char *status = mo_printf("answered %lld", (long long)d->status),
				 *host = webhook_host(h->config->url);
	const char *what = d->error ? d->error : status;

	if (d->result == WEBHOOK_REFUSED)
		mo_log(MO_WARNING, NULL, NULL,
		       "webhook %s: %s %s: events %lld to %lld are left out", h->config->name, host,
		       what, (long long)d->first, (long long)d->last);
	else if (d->result == WEBHOOK_FAILED && h->pace.failures == 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "webhook %s: %s %s: its events wait; it is tried again, after 5 s and ever "
		       "later, each 15 minutes at last",
		       h->config->name, host, what);
	else if (d->result == WEBHOOK_DELIVERED && h->pace.failures > 0)
		mo_log(MO_NOTICE, NULL, NULL, "webhook %s: %s takes events again", h->config->name,
		       host);
}

/* What moe-webhook printed, into d. */
static void read_answer(const struct errand_end *end, struct webhook_delivery *d)
{
	_cleanup_(webhook_answer_done) struct webhook_answer a;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	mo_desc_init(&webhook_answer_desc, &a);
	int r = mo_read_fd(end->out, ANSWER_MAX, &text);
	if (r >= 0 && end->exited && end->status == 0)
		r = wire_decode(&webhook_answer_desc, text.data ? text.data : "", text.len, true,
				&a, NULL);
	d->status = a.status;
	if (end->late)
		d->error = mo_strdup("moe-webhook took too long and was killed");
	else if (r < 0 || (a.status == MO_NONE && !a.error))
		d->error = mo_strdup("moe-webhook ended without an answer");
	else
		d->error = TAKE_PTR(a.error);
	d->result = (int)webhook_judge(d->status);
}

static void answer_test(struct manager *m, const struct shipment *p)
{
	struct http_request *r = http_find(m->http, p->request);

	if (r)
		api_send_doc(r, 200, &webhook_delivery_desc, &p->delivery);
}

static void ended(struct shipment *p)
{
	struct hook *h = p->hook;
	struct manager *m = h->owner->manager;

	p->errand = NULL;
	p->delivery.ms = (mo_clock_boot_us() - p->began) / 1000;
	keep_delivery(h, &p->delivery);
	h->tries[p->delivery.result]++;
	if (p->delivery.test) {
		answer_test(m, p);
	} else {
		log_result(h, &p->delivery);
		webhook_ended(&h->pace, (enum webhook_result)p->delivery.result, p->next,
			      manager_now(m));
		if (p->delivery.result != WEBHOOK_FAILED) {
			h->missed += p->missed;
			webhooks_keep_sent(h->owner);
		}
	}
	mo_desc_done(&webhook_delivery_desc, &p->delivery);
	webhook_send_next(h);
}

static void on_ended(void *arg, const struct errand_end *end)
{
	struct shipment *p = arg;

	read_answer(end, &p->delivery);
	ended(p);
}

static int start(struct shipment *p, const struct webhook_batch *batch)
{
	static char *const argv[] = { (char *)"moe-webhook", NULL };
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8", NULL };
	const struct webhook *w = p->hook->config;
	struct manager *m = p->hook->owner->manager;
	_cleanup_(mo_freep) char *program = mo_libexec("moe-webhook");
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 }, order = { 0 };

	if (!program)
		return -ENOENT;
	webhook_body(m, w, batch, &body);
	wire_encode(&webhook_order_desc,
		    &(struct webhook_order){ .url = w->url,
					     .secret = w->secret,
					     .ca_file = w->ca_file,
					     .body = body.data,
					     .timeout_ms = TIMEOUT_MS },
		    &order);
	const struct errand_call call = { .program = program,
					  .argv = argv,
					  .env = env,
					  .input = order.data,
					  .n_input = order.len,
					  .time_us = ERRAND_US };

	return errand_start(m->loop, &call, on_ended, p, &p->errand);
}

void webhook_ship(struct shipment *p, const struct webhook_batch *batch, bool test)
{
	struct manager *m = p->hook->owner->manager;
	struct webhook_delivery *d = &p->delivery;

	mo_desc_init(&webhook_delivery_desc, d);
	d->time = manager_now(m);
	d->events = (int64_t)batch->n;
	d->test = test;
	if (!test) {
		d->first = batch->events[0]->seq;
		d->last = batch->events[batch->n - 1]->seq;
	}
	p->next = batch->next;
	p->missed = batch->missed;
	p->began = mo_clock_boot_us();
	int r = start(p, batch);
	if (r >= 0)
		return;
	d->error = mo_printf("moe-webhook: %s", strerror(-r));
	d->result = WEBHOOK_FAILED;
	ended(p);
}

/* When one of them may be sent something that it lacks. */
static void set_timer(struct webhooks *s)
{
	int64_t due = INT64_MAX, now = manager_now(s->manager);

	for (size_t i = 0; i < s->file.n_webhooks; i++) {
		const struct hook *h = &s->hooks[i];

		if (!h->events.errand && h->pace.next < manager_state(s->manager)->next_event_seq)
			due = MO_MIN(due, h->pace.due);
	}
	/* core time and CLOCK_BOOTTIME advance alike */
	mo_timer_at(s->timer,
		    due == INT64_MAX ? INT64_MAX : mo_clock_boot_us() + MO_MAX(due - now, 0));
}

void webhook_send_next(struct hook *h)
{
	struct manager *m = h->owner->manager;
	struct webhook_batch batch;

	if (!h->events.errand && manager_now(m) >= h->pace.due) {
		webhook_batch(h->config, manager_state(m), h->pace.next, &batch);
		if (batch.n > 0) {
			webhook_ship(&h->events, &batch, false);
		} else {
			h->pace.next = batch.next;
			h->missed += batch.missed;
		}
	}
	set_timer(h->owner);
}
