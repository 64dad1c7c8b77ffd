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
#include "daemon/webhooks_sent.h"
#include "daemon/webhooks_ship.h"
#include "lib/loop/loop.h"
#include "lib/recipe/webhooks_file.h"

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

void webhooks_flush(struct manager *m)
{
	struct webhooks *s = m->webhooks;

	for (size_t i = 0; i < s->file.n_webhooks; i++)
		webhook_send_next(&s->hooks[i]);
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

static void hooks_free(struct webhooks *s)
{
	for (size_t i = 0; s->hooks && i < s->file.n_webhooks; i++) {
		struct hook *h = &s->hooks[i];

		errand_free(h->events.errand);
		errand_free(h->test.errand);
		mo_vec_clear(&webhook_delivery_desc, (void **)&h->deliveries, &h->n_deliveries);
	}
	free(s->hooks);
	s->hooks = NULL;
	mo_desc_done(&webhooks_file_desc, &s->file);
}

static bool named(const struct manager *m)
{
	return m->options->webhooks && *m->options->webhooks;
}

/* Untouched by a file that cannot be used. */
static bool load(const struct manager *m, struct webhooks_file *ret, const char *else_what)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = webhooks_load(m->options->webhooks, ret, &err);

	if (r < 0)
		mo_log(MO_ERR, NULL, NULL,
		       "webhooks: %s%s%s; %s: repair the file and reload moed (systemctl reload "
		       "moed)",
		       mo_error_text(&err, r), err.hint ? "; " : "", err.hint ? err.hint : "",
		       else_what);
	return r >= 0;
}

void webhooks_new(struct manager *m)
{
	struct webhooks *s = m->webhooks = mo_alloc(sizeof(*s));

	s->manager = m;
	mo_desc_init(&webhooks_file_desc, &s->file);
	if (mo_timer_new(m->loop, on_due, s, &s->timer) < 0)
		abort();
	if (!named(m))
		return;
	if (!load(m, &s->file, "nobody is sent events"))
		mo_desc_done(&webhooks_file_desc, &s->file);
	hooks_new(s);
}

/* What one that stays has come to; a repaired one is tried at once. */
static void take_over(struct hook *to, struct hook *from)
{
	to->pace.next = from->pace.next;
	to->deliveries = TAKE_PTR(from->deliveries);
	to->n_deliveries = from->n_deliveries;
	from->n_deliveries = 0;
	to->missed = from->missed;
	memcpy(to->tries, from->tries, sizeof(to->tries));
	memset(from->tries, 0, sizeof(from->tries));
}

/* A test that is on its way is answered; of events it comes again. */
static void give_up(struct hook *h)
{
	struct http_request *r =
		h->test.errand ? http_find(h->owner->manager->http, h->test.request) : NULL;

	if (r)
		http_problem(r, 503, "webhook %s: its file was read anew meanwhile: test it again",
			     h->config->name);
}

void webhooks_reload(struct manager *m)
{
	struct webhooks *s = m->webhooks, before = *s;
	struct webhooks_file file;

	if (!named(m))
		return;
	mo_desc_init(&webhooks_file_desc, &file);
	if (!load(m, &file, "those of before are sent events")) {
		mo_desc_done(&webhooks_file_desc, &file);
		return;
	}
	s->file = file;
	hooks_new(s);
	for (size_t i = 0; i < before.file.n_webhooks; i++) {
		struct hook *old = &before.hooks[i];

		for (size_t k = 0; k < file.n_webhooks; k++)
			if (mo_streq(old->config->name, file.webhooks[k].name))
				take_over(&s->hooks[k], old);
		for (int k = 0; k < _WEBHOOK_RESULT_N; k++)
			s->tries_before[k] += old->tries[k];
		give_up(old);
	}
	hooks_free(&before);
	webhooks_keep_sent(s);
	mo_log(MO_NOTICE, NULL, NULL, "%zu webhooks are sent events, as %s has them now",
	       file.n_webhooks, m->options->webhooks);
	webhooks_flush(m);
}

struct webhooks *webhooks_free(struct webhooks *s)
{
	if (!s)
		return NULL;
	hooks_free(s);
	mo_timer_free(s->timer);
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
	int64_t n = m->webhooks->tries_before[result];

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
	webhook_ship(&h->test, &batch, true);
	return 0;
}
