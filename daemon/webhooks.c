/* See webhooks.h. A webhook is a reader of the ring of events as a follower of the stream is: how
 * far it has come is all that is kept of it, in STATE/webhooks.sent over starts. So a receiver that
 * is slow or away costs one process at a time and no memory, keeps nobody waiting, and gets what it
 * missed as far as the ring has it; after a kill of moed a delivery may come twice (each event has
 * its seq). What is sent and when: daemon/core/rules/webhook.c. */
#include "daemon/webhooks.h"

#include <errno.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/errand.h"
#include "daemon/webhook_body.h"
#include "daemon/webhooks_sent.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"
#include "lib/recipe/webhooks_file.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define TIMEOUT_MS 10000
#define ERRAND_US (15 * 1000000LL) /* beyond that of its request */
#define ANSWER_MAX 65536

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
	struct hook *hooks; /* one for each of the file */
	struct mo_timer *timer;
};

static void keep_sent(const struct webhooks *s)
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

/* Where the last controller was with each; one that it did not have begins with what happens now.
 * A state that was restored from a backup may have fewer events. */
static void take_up(struct webhooks *s)
{
	_cleanup_(webhooks_sent_done) struct webhooks_sent all;
	int64_t newest = manager_state(s->manager)->next_event_seq;

	mo_desc_init(&webhooks_sent_desc, &all);
	webhooks_sent_read(s->manager->options->state_dir, &all);
	for (size_t i = 0; i < s->file.n_webhooks; i++) {
		s->hooks[i].pace.next = newest;
		for (size_t k = 0; k < all.n_items; k++)
			if (mo_streq(all.items[k].name, s->hooks[i].config->name))
				s->hooks[i].pace.next =
					MO_MIN(MO_MAX(all.items[k].next, 1), newest);
	}
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

static void send_next(struct hook *h);

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
			keep_sent(h->owner);
		}
	}
	mo_desc_done(&webhook_delivery_desc, &p->delivery);
	send_next(h);
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

static void ship(struct shipment *p, const struct webhook_batch *batch, bool test)
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

static void send_next(struct hook *h)
{
	struct manager *m = h->owner->manager;
	struct webhook_batch batch;

	if (!h->events.errand && manager_now(m) >= h->pace.due) {
		webhook_batch(h->config, manager_state(m), h->pace.next, &batch);
		if (batch.n > 0) {
			ship(&h->events, &batch, false);
		} else {
			h->pace.next = batch.next;
			h->missed += batch.missed;
		}
	}
	set_timer(h->owner);
}

void webhooks_flush(struct manager *m)
{
	struct webhooks *s = m->webhooks;

	for (size_t i = 0; i < s->file.n_webhooks; i++)
		send_next(&s->hooks[i]);
}

static void on_due(void *arg)
{
	struct webhooks *s = arg;

	webhooks_flush(s->manager);
}

static void hooks_new(struct webhooks *s)
{
	s->hooks = mo_alloc_array(s->file.n_webhooks, sizeof(*s->hooks));
	for (size_t i = 0; i < s->file.n_webhooks; i++) {
		struct hook *h = &s->hooks[i];

		*h = (struct hook){ .owner = s, .config = &s->file.webhooks[i] };
		h->events.hook = h->test.hook = h;
	}
	take_up(s);
}

void webhooks_new(struct manager *m)
{
	struct webhooks *s = m->webhooks = mo_alloc(sizeof(*s));
	const char *path = m->options->webhooks;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	s->manager = m;
	mo_desc_init(&webhooks_file_desc, &s->file);
	if (mo_timer_new(m->loop, on_due, s, &s->timer) < 0)
		abort();
	if (!path || !*path)
		return;
	int r = webhooks_load(path, &s->file, &err);
	if (r < 0) {
		mo_desc_done(&webhooks_file_desc, &s->file);
		mo_log(MO_ERR, NULL, NULL,
		       "webhooks: %s%s%s; nobody is sent events: repair the file and restart moed",
		       mo_error_text(&err, r), err.hint ? "; " : "", err.hint ? err.hint : "");
	}
	hooks_new(s);
}

struct webhooks *webhooks_free(struct webhooks *s)
{
	for (size_t i = 0; s && s->hooks && i < s->file.n_webhooks; i++) {
		struct hook *h = &s->hooks[i];

		errand_free(h->events.errand);
		errand_free(h->test.errand);
		mo_vec_clear(&webhook_delivery_desc, (void **)&h->deliveries, &h->n_deliveries);
	}
	if (!s)
		return NULL;
	mo_timer_free(s->timer);
	free(s->hooks);
	mo_desc_done(&webhooks_file_desc, &s->file);
	free(s);
	return NULL;
}

size_t webhooks_count(const struct manager *m)
{
	return m->webhooks->file.n_webhooks;
}

void webhooks_view(const struct manager *m, size_t i, struct webhook_view *ret)
{
	const struct hook *h = &m->webhooks->hooks[i];
	const struct webhook *w = h->config;
	struct webhook_batch batch;

	webhook_batch(w, manager_state(m), h->pace.next, &batch);
	*ret = (struct webhook_view){
		.name = w->name,
		.host = webhook_host(w->url),
		.is_signed = w->secret != NULL,
		.types = w->types,
		.n_types = w->n_types,
		.jobs = w->jobs,
		.n_jobs = w->n_jobs,
		.format = w->format,
		.next = h->pace.next,
		.waiting = (int64_t)batch.n,
		.failures = h->pace.failures,
		.due_at = h->pace.failures ? h->pace.due : MO_NONE,
		.delivered = h->tries[WEBHOOK_DELIVERED],
		.refused = h->tries[WEBHOOK_REFUSED],
		.failed = h->tries[WEBHOOK_FAILED],
		.missed = h->missed,
		.deliveries = h->deliveries,
		.n_deliveries = h->n_deliveries,
	};
}

int64_t webhooks_tries(const struct manager *m, int result)
{
	int64_t n = 0;

	for (size_t i = 0; i < m->webhooks->file.n_webhooks; i++)
		n += m->webhooks->hooks[i].tries[result];
	return n;
}

int webhooks_test(struct manager *m, const char *name, struct http_request *r)
{
	struct hook *h = NULL;

	for (size_t i = 0; !h && i < m->webhooks->file.n_webhooks; i++)
		if (mo_streq(m->webhooks->hooks[i].config->name, name))
			h = &m->webhooks->hooks[i];
	if (!h)
		return -ENOENT;
	if (h->test.errand)
		return -EBUSY;
	_cleanup_(mo_freep) char *message =
		mo_printf("%s tries webhook %s: nothing has happened",
			  http_caller(r)->user ? http_caller(r)->user : "somebody", name);
	const struct event e = { .seq = MO_NONE,
				 .time = manager_now(m),
				 .type = (char *)"webhook.test",
				 .job = MO_NONE,
				 .rank = MO_NONE,
				 .attempt = MO_NONE,
				 .message = message };
	const struct webhook_batch batch = { .events = { &e }, .n = 1 };

	http_hold(r);
	h->test.request = http_id(r);
	ship(&h->test, &batch, true);
	return 0;
}
