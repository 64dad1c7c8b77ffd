/* What the controller is sent: results that are not OK, orders that are done, the stack. A new
 * version only when something changed. */
#include <string.h>

#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"
#include "lib/model/limits.h"

static bool probed_since(const struct object *o, int64_t at)
{
	return o->stuck || (o->full_at != MO_NONE && o->full_at >= at);
}

/* The verdict's check was made for the order, or cannot be. */
static bool answered(const struct health *h, const struct object *o, const struct verdict *v,
		     const struct order *order)
{
	if (!health_ordered(order, v->check) || !health_applies(h, v->check))
		return true;
	if (!v->check->n_argv)
		return probed_since(o, order->at) && !verdict_pending(v);
	return (h->n_steps > 0 && order->job) ||
	       (!v->under_way && v->started_at != MO_NONE && v->started_at >= order->at &&
		!verdict_pending(v));
}

static bool order_is_done(const struct health *h, const struct order *order, int64_t now)
{
	if (now >= health_order_ends(order))
		return true;
	for (size_t i = 0; i < h->n_objects; i++)
		for (size_t k = 0; k < h->objects[i]->n_verdicts; k++)
			if (!answered(h, h->objects[i], &h->objects[i]->verdicts[k], order))
				return false;
	return true;
}

static bool preflight_done(const struct health *h)
{
	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *o = h->objects[i];
		for (size_t k = 0; k < o->n_verdicts; k++) {
			const struct verdict *v = &o->verdicts[k];
			if ((v->check->when & WHEN_PREFLIGHT) && health_applies(h, v->check) &&
			    (!v->probed || verdict_pending(v)))
				return false;
		}
	}
	return true;
}

static void add_result(const struct object *o, const struct verdict *v, struct node_health *n)
{
	if (n->n_results >= MO_CHECK_RESULTS_MAX)
		return;
	struct check_result *r = MO_ADD(n, results, &check_result_desc);
	mo_str_set(&r->check, v->check->id);
	mo_str_set(&r->object, o->name);
	mo_str_set(&r->text, v->text);
	mo_str_set(&r->next, v->skipped ? NULL : v->check->next);
	r->state = v->state;
	r->action = v->skipped ? ACTION_REPORT : v->check->action;
	r->when = v->check->when;
	r->count = v->count;
	r->since_boot = v->check->measure == MEASURE_SINCE_BOOT;
	r->hardware = v->check->hardware;
	r->unproven = !v->check->proven;
	r->since = v->since;
	r->at = v->at;
	for (size_t i = 0; i < v->n_evidence; i++)
		mo_strs_add(&r->evidence, &r->n_evidence, v->evidence[i]);
}

static void add_stack(const struct health *h, struct node_health *n)
{
	const struct object *o = health_object(h, PROBE_STACK, "host");

	for (size_t i = 0; o && i < o->last.n_readings && n->n_stack < MO_STACK_ITEMS_MAX; i++) {
		const struct reading *r = &o->last.readings[i];
		if (!r->text)
			continue;
		struct stack_item *item = MO_ADD(n, stack, &stack_item_desc);
		mo_str_set(&item->key, r->key);
		item->value = mo_strndup(r->text, 1000);
	}
	for (size_t i = 0;
	     o && o->last.n_readings && i < h->n_settings && n->n_stack < MO_STACK_ITEMS_MAX; i++)
		mo_desc_copy(&stack_item_desc, MO_ADD(n, stack, &stack_item_desc), &h->settings[i]);
}

void health_settings(struct health *h, const struct stack_item *items, size_t n, int64_t now)
{
	mo_vec_clear(&stack_item_desc, (void **)&h->settings, &h->n_settings);
	for (size_t i = 0; i < n; i++)
		mo_desc_copy(&stack_item_desc, MO_ADD(h, settings, &stack_item_desc), &items[i]);
	health_settle(h, now);
}

/* A node without real GPUs has nothing that a failed attempt of a job would have to wait for. */
static bool has_failure_checks(const struct health *h)
{
	for (size_t i = 0; i < h->n_checks; i++)
		if ((h->checks[i].when & WHEN_FAILURE) && health_applies(h, &h->checks[i]) &&
		    (h->n_gpus || h->checks[i].n_argv))
			return true;
	return false;
}

static void gather(const struct health *h, struct node_health *n)
{
	n->version = h->reported.version;
	n->ok = 0;
	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *o = h->objects[i];
		for (size_t k = 0; k < o->n_verdicts; k++) {
			const struct verdict *v = &o->verdicts[k];
			if (!v->probed || !health_applies(h, v->check))
				continue;
			if (v->state == CHECK_OK)
				n->ok++;
			else
				add_result(o, v, n);
		}
	}
	n->preflight_done = preflight_done(h);
	n->failure_checks = has_failure_checks(h);
	for (size_t i = 0; i < h->n_orders; i++)
		if (h->orders[i].done) {
			struct checked_attempt *c = MO_ADD(n, checked, &checked_attempt_desc);
			*c = (struct checked_attempt){ h->orders[i].job, h->orders[i].attempt };
		}
	add_stack(h, n);
}

static bool has_answer(const struct node_health *n, const struct checked_attempt *c)
{
	for (size_t i = 0; i < n->n_checked; i++)
		if (n->checked[i].job == c->job && n->checked[i].attempt == c->attempt)
			return true;
	return false;
}

/* An order was answered that was not before; others may have been forgotten meanwhile. */
static bool new_answer(const struct node_health *n, const struct node_health *reported)
{
	for (size_t i = 0; i < n->n_checked; i++)
		if (!has_answer(reported, &n->checked[i]))
			return true;
	return false;
}

void health_settle(struct health *h, int64_t now)
{
	struct node_health n;

	for (size_t i = 0; i < h->n_orders; i++)
		h->orders[i].done = h->orders[i].done || order_is_done(h, &h->orders[i], now);
	mo_desc_init(&node_health_desc, &n);
	gather(h, &n);
	if (!mo_desc_equal(&node_health_desc, &n, &h->reported)) {
		h->awaited |= (n.preflight_done && !h->reported.preflight_done) ||
			      new_answer(&n, &h->reported);
		n.version++;
		mo_desc_copy(&node_health_desc, &h->reported, &n);
		h->unsaved = true;
	}
	mo_desc_done(&node_health_desc, &n);
}

const struct node_health *health_results(struct health *h)
{
	return &h->reported;
}

void health_acked(struct health *h, int64_t version)
{
	h->acked = version;
}

bool health_awaited(struct health *h)
{
	bool awaited = h->awaited;
	h->awaited = false;
	return awaited;
}

bool health_untold(const struct health *h)
{
	return h->acked != h->reported.version;
}

static int64_t count_of(const struct probe *p, const char *key)
{
	double x = reading_value(p, key);
	return x == MO_NONE_F ? MO_NONE : (int64_t)x;
}

static void nic_newest(const struct object *o, struct nic_sensors **ret, size_t *n_ret)
{
	struct nic_sensors *s = mo_vec_add(&nic_sensors_desc, (void **)ret, n_ret);

	s->name = mo_strdup(o->name);
	s->state = mo_strdup(reading_text(&o->last, "state"));
	s->rate_gbps = reading_value(&o->last, "rate_gbps");
	s->link_downed = count_of(&o->last, "link_downed");
	s->carrier_down = count_of(&o->last, "carrier_down");
	s->symbol_error = count_of(&o->last, "symbol_error");
	s->link_error_recovery = count_of(&o->last, "link_error_recovery");
	s->rcv_errors = count_of(&o->last, "rcv_errors");
	s->out_of_sequence = count_of(&o->last, "out_of_sequence");
	s->local_ack_timeout = count_of(&o->last, "local_ack_timeout");
}

static void gpu_newest(const struct object *o, struct gpu_sensors **ret, size_t *n_ret)
{
	struct gpu_sensors *s = mo_vec_add(&gpu_sensors_desc, (void **)ret, n_ret);

	*s = o->sensors;
	s->slot = o->slots[0];
}

void health_nics(struct health *h, struct nic_sensors **ret, size_t *n_ret)
{
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		if (o->area != PROBE_NIC || !o->sensors_new)
			continue;
		nic_newest(o, ret, n_ret);
		o->sensors_new = false;
	}
}

void health_sensors(struct health *h, struct gpu_sensors **ret, size_t *n_ret)
{
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		if (!o->sensors_new || !o->n_slots)
			continue;
		gpu_newest(o, ret, n_ret);
		o->sensors_new = false;
	}
}

void health_newest(const struct health *h, struct gpu_sensors **gpus, size_t *n_gpus,
		   struct nic_sensors **nics, size_t *n_nics)
{
	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *o = h->objects[i];

		if (o->area == PROBE_GPU && o->n_slots)
			gpu_newest(o, gpus, n_gpus);
		if (o->area == PROBE_NIC)
			nic_newest(o, nics, n_nics);
	}
}
