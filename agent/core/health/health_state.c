/* The life of what agent/core/health/health.c and its siblings know of a node, and what can be
 * asked of it without a probe. Here nothing is decided: probes, findings and messages are
 * decided by the files above it. */
#include "agent/core/health/health_state.h"

#include <string.h>

struct health *health_new(const struct health_checks *checks, const char *boot_id,
			  const struct health_intervals *intervals, int64_t first_version)
{
	struct health *h = mo_alloc(sizeof(*h));

	h->checks = mo_alloc_array(MO_MAX(checks->n_checks, (size_t)1), sizeof(*h->checks));
	for (h->n_checks = 0; h->n_checks < checks->n_checks; h->n_checks++) {
		mo_desc_init(&health_check_desc, &h->checks[h->n_checks]);
		mo_desc_copy(&health_check_desc, &h->checks[h->n_checks],
			     &checks->checks[h->n_checks]);
	}
	h->boot_id = mo_strdup(boot_id);
	h->intervals = *intervals;
	h->klog_seq = -1;
	h->acked = MO_NONE;
	mo_desc_init(&node_health_desc, &h->reported);
	h->reported.version = first_version;
	h->reported.ok = 0;
	return h;
}

static void verdict_done(struct verdict *v)
{
	free(v->text);
	free(v->found);
	mo_strs_clear(&v->evidence, &v->n_evidence);
}

bool verdict_pending(const struct verdict *v)
{
	return (v->bad > 0 && v->bad < v->check->consecutive) ||
	       (v->crit > 0 && v->crit < v->check->consecutive);
}

void health_object_free(struct object *o)
{
	for (size_t i = 0; i < o->n_verdicts; i++)
		verdict_done(&o->verdicts[i]);
	free(o->verdicts);
	mo_desc_done(&probe_desc, &o->last);
	free(o->slots);
	free(o->name);
	free(o->identity);
	free(o);
}

struct health *health_free(struct health *h)
{
	if (!h)
		return NULL;
	while (h->n_objects > 0)
		health_object_free(h->objects[--h->n_objects]);
	for (size_t i = 0; i < h->n_checks; i++)
		mo_desc_done(&health_check_desc, &h->checks[i]);
	mo_vec_clear(&health_counter_desc, (void **)&h->counters, &h->n_counters);
	mo_desc_done(&node_health_desc, &h->reported);
	mo_vec_clear(&stack_item_desc, (void **)&h->settings, &h->n_settings);
	mo_desc_free(&health_memory_desc, h->retained);
	free(h->objects);
	free(h->checks);
	free(h->orders);
	free(h->boot_id);
	free(h->discovery);
	free(h->partition_expected);
	free(h);
	return NULL;
}

void health_wall(struct health *h, int64_t offset_us)
{
	h->wall_offset = offset_us;
}

void health_expect(struct health *h, int64_t memory_bytes, const char *partition)
{
	h->memory_expected = memory_bytes;
	mo_str_set(&h->partition_expected, partition);
}

bool health_disable(struct health *h, const char *id)
{
	for (size_t i = 0; i < h->n_checks; i++)
		if (mo_streq(h->checks[i].id, id)) {
			h->checks[i].enabled = false;
			return true;
		}
	return false;
}

const struct health_check *health_check_at(const struct health *h, size_t i)
{
	return i < h->n_checks ? &h->checks[i] : NULL;
}

bool health_applies(const struct health *h, const struct health_check *c)
{
	return c->enabled && (c->needs != NEEDS_GPU || h->n_gpus) &&
	       (c->needs != NEEDS_NIC || h->n_nics);
}

bool health_idle(const struct health *h, const struct object *o)
{
	return o->area == PROBE_GPU || o->area == PROBE_NIC ? !o->busy : h->n_steps == 0;
}

struct gpu_work health_work(const struct health *h, const char *gpu)
{
	const struct object *o = health_object(h, PROBE_GPU, gpu);
	struct gpu_work ret;

	gpu_work_begin(&ret);
	return o ? o->work : ret;
}

bool health_loads(const struct health_check *c)
{
	return c->n_argv && c->needs == NEEDS_GPU && !(c->when & WHEN_PERIODIC);
}

bool health_loaded(const struct health *h)
{
	for (size_t i = 0; i < h->n_objects; i++)
		for (size_t k = 0; k < h->objects[i]->n_verdicts; k++)
			if (h->objects[i]->verdicts[k].under_way &&
			    health_loads(h->objects[i]->verdicts[k].check))
				return true;
	return false;
}

const struct order *health_open_order(const struct health *h)
{
	for (size_t i = 0; i < h->n_orders; i++)
		if (!h->orders[i].done)
			return &h->orders[i];
	return NULL;
}

int64_t health_order_ends(const struct order *order)
{
	if (!order->job)
		return INT64_MAX;
	return order->at + (order->thorough ? HEALTH_DOUBT_BUDGET_US : HEALTH_BUDGET_US);
}

bool health_ordered(const struct order *order, const struct health_check *c)
{
	return c->when & WHEN_FAILURE || (order->thorough && c->when & WHEN_DOUBT);
}

struct object *health_object(const struct health *h, int area, const char *name)
{
	for (size_t i = 0; i < h->n_objects; i++)
		if (h->objects[i]->area == area && mo_streq(h->objects[i]->name, name))
			return h->objects[i];
	return NULL;
}

bool health_blocked(const struct object *o)
{
	return o->stuck || o->held;
}
