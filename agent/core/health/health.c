/* When what is probed, and which orders to check there are (see health.h). Called by
 * agent/health.c. */
#include "agent/core/health/health.h"

#include <string.h>

#include "agent/core/health/health_state.h"
#include "lib/model/limits.h"

/* the fingerprint changes when somebody upgrades: once per that many probes of the host */
#define STACK_EVERY 10

/* ---- objects */

static struct object *add_object(struct health *h, int area, const char *name, int64_t now)
{
	struct object *o = health_object(h, area, name);

	if (o)
		return o;
	o = mo_alloc(sizeof(*o));
	*o = (struct object){ .area = area,
			      .name = mo_strdup(name),
			      .next = now,
			      .next_sensors = INT64_MAX,
			      .asked_at = MO_NONE,
			      .freed_at = h->begun_anew ? now : MO_NONE,
			      .full_at = MO_NONE,
			      .traffic = { .read_at = MO_NONE, .moved_at = MO_NONE },
			      .activity = { .read_at = MO_NONE, .energy_j = MO_NONE_F } };
	gpu_work_begin(&o->work);
	mo_desc_init(&probe_desc, &o->last);
	mo_desc_init(&gpu_sensors_desc, &o->sensors);
	for (size_t i = 0; i < ELEMENTSOF(o->throttle_base); i++)
		o->throttle_base[i] = MO_NONE_F;
	for (size_t i = 0; i < h->n_checks; i++) {
		if (h->checks[i].area != area)
			continue;
		struct verdict *v = MO_GROW(o->verdicts, o->n_verdicts);
		*v = (struct verdict){ .check = &h->checks[i],
				       .count = MO_NONE,
				       .last = MO_NONE_F,
				       .last_of = MO_NONE_F,
				       .started_at = MO_NONE,
				       .next = h->checks[i].when & (WHEN_PREFLIGHT | WHEN_PERIODIC)
						       ? now
						       : INT64_MAX };
	}
	*MO_GROW(h->objects, h->n_objects) = o;
	health_retained_apply(h, o);
	return o;
}

static bool paired(const struct nodeinfo *info, const char *nic)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].bdf && mo_streq(info->gpus[i].nic, nic))
			return true;
	return false;
}

static bool still_there(const struct object *o, const struct nodeinfo *info)
{
	if (o->area == PROBE_NIC)
		return paired(info, o->name);
	if (o->area != PROBE_GPU)
		return true;
	for (size_t i = 0; i < info->n_gpus; i++)
		if (mo_streq(info->gpus[i].bdf, o->name))
			return true;
	return false;
}

int64_t health_interval(const struct health *h, const struct object *o)
{
	switch (o->area) {
	/* a node without GPUs is to cost next to nothing */
	case PROBE_KLOG:
		return h->n_gpus ? h->intervals.klog_us
				 : MO_MAX(h->intervals.klog_us, h->intervals.host_us);
	case PROBE_HOST: return h->intervals.host_us;
	case PROBE_STACK: return h->intervals.host_us * STACK_EVERY;
	default: return h->intervals.device_us;
	}
}

/* job: between jobs that share the node; none: there should be; off: nothing asks for them. */
static const char *walls_word(const struct nodeinfo *info)
{
	for (size_t i = 0; i < info->n_findings; i++)
		if (mo_streq(info->findings[i].object, WALLS_OBJECT))
			return "none";
	return info->walls ? "job" : "off";
}

void health_devices(struct health *h, const struct nodeinfo *info, int64_t expect_gpus, int64_t now)
{
	for (size_t i = 0; i < h->n_objects; i++)
		h->objects[i]->n_slots = 0;
	for (size_t i = h->n_objects; i-- > 0;)
		if (!still_there(h->objects[i], info)) {
			health_object_free(h->objects[i]);
			memmove(&h->objects[i], &h->objects[i + 1],
				(--h->n_objects - i) * sizeof(*h->objects));
		}
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].bdf) {
			struct object *o = add_object(h, PROBE_GPU, info->gpus[i].bdf, now);
			if (!o->slots)
				o->slots = mo_alloc_array(MO_GPUS_PER_NODE_MAX, sizeof(*o->slots));
			if (o->n_slots < MO_GPUS_PER_NODE_MAX)
				o->slots[o->n_slots++] = info->gpus[i].index;
		}
	for (size_t i = 0; i < info->n_nics; i++)
		if (paired(info, info->nics[i].name))
			add_object(h, PROBE_NIC, info->nics[i].name, now);
	add_object(h, PROBE_HOST, "host", now);
	add_object(h, PROBE_KLOG, "host", now);
	add_object(h, PROBE_STACK, "host", now);
	h->n_gpus = h->n_nics = 0;
	for (size_t i = 0; i < h->n_objects; i++) {
		h->n_gpus += h->objects[i]->area == PROBE_GPU;
		h->n_nics += h->objects[i]->area == PROBE_NIC;
		h->objects[i]->spread_us =
			health_interval(h, h->objects[i]) / (int64_t)h->n_objects * (int64_t)i;
	}
	h->gpus_expected = expect_gpus;
	h->walls = walls_word(info);
	health_settle(h, now);
}

void health_discovery(struct health *h, const char *why, bool nothing, int64_t now)
{
	struct object *host = health_object(h, PROBE_HOST, "host");

	if (mo_streq(why, h->discovery) && nothing == h->nothing_known)
		return;
	mo_str_set(&h->discovery, why);
	h->nothing_known = nothing;
	if (host)
		host->next = MO_MIN(host->next, now);
}

static bool object_busy(const struct object *o, const int64_t *slots, size_t n)
{
	for (size_t i = 0; i < o->n_slots; i++)
		for (size_t k = 0; k < n; k++)
			if (o->slots[i] == slots[k])
				return true;
	return false;
}

/* What cannot be probed while a job runs does not keep the node's other GPUs from being used. */
static void excuse(struct object *o)
{
	for (size_t i = 0; i < o->n_verdicts; i++)
		if (!o->verdicts[i].probed && !(o->verdicts[i].check->when & WHEN_PERIODIC))
			o->verdicts[i].probed = true;
}

void health_busy(struct health *h, const int64_t *slots, size_t n_slots, size_t n_steps,
		 int64_t now)
{
	size_t before = h->n_steps;

	h->n_steps = n_steps;
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		bool device = o->area == PROBE_GPU || o->area == PROBE_NIC;
		bool busy = o->area == PROBE_GPU ? object_busy(o, slots, n_slots) : n_steps > 0;
		bool freed = device ? o->busy && !busy : before > n_steps;
		if (busy && !o->busy) {
			health_taken(o);
			health_traffic_begin(o);
			gpu_work_begin(&o->work);
		}
		o->busy = busy;
		if (busy)
			excuse(o);
		if (freed) {
			o->epilog = true;
			o->freed_at = now;
			o->next = MO_MIN(o->next, now);
		}
		for (size_t k = 0; freed && k < o->n_verdicts; k++)
			if (o->verdicts[k].check->n_argv &&
			    (o->verdicts[k].check->when & WHEN_EPILOG))
				o->verdicts[k].next = now;
	}
	health_settle(h, now);
}

/* ---- probes */

static bool program_may_run(const struct health *h, const struct verdict *v)
{
	return v->check->n_argv && health_applies(h, v->check) && !v->under_way &&
	       (h->n_steps == 0 || (v->check->when & WHEN_PERIODIC));
}

static int64_t program_due(const struct health *h, const struct verdict *v)
{
	const struct order *order = health_open_order(h);

	if (!program_may_run(h, v))
		return INT64_MAX;
	if (order && health_ordered(order, v->check) &&
	    (v->started_at == MO_NONE || v->started_at < order->at || verdict_pending(v)))
		return order->at;
	return v->next;
}

static size_t under_way(const struct health *h, bool *ret_program)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_objects; i++) {
		n += h->objects[i]->under_way && !health_blocked(h->objects[i]);
		for (size_t k = 0; k < h->objects[i]->n_verdicts; k++)
			*ret_program |= h->objects[i]->verdicts[k].under_way;
	}
	return n;
}

static int64_t object_due(const struct health *h, const struct object *o)
{
	return o->under_way || health_blocked(o) ? INT64_MAX : MO_MIN(o->next, o->next_sensors);
}

/* NULL: nothing is due. Those that are looked at every second do not keep the others waiting. */
static struct object *due_longest(const struct health *h, int64_t now)
{
	struct object *found = NULL;

	for (size_t i = 0; i < h->n_objects; i++) {
		int64_t at = object_due(h, h->objects[i]);

		if (at <= now && (!found || at < object_due(h, found)))
			found = h->objects[i];
	}
	return found;
}

static void begin(struct object *o, int64_t now, struct health_pass *ret)
{
	o->under_way = true;
	o->sensors_only = o->next > now;
	o->asked_at = now;
	ret->area = o->area;
	ret->object = o->name;
	ret->sensors = o->sensors_only;
}

/* That of area gpu is run once for all GPUs. Those of doubt go first: what a GPU computes matters
 * more than how fast, and there may be no time for both. */
static bool program_begins(struct health *h, int64_t now, struct health_pass *ret)
{
	const struct health_check *c = NULL;

	for (size_t i = 0; i < h->n_objects; i++)
		for (size_t k = 0; k < h->objects[i]->n_verdicts; k++) {
			const struct verdict *v = &h->objects[i]->verdicts[k];
			if (program_due(h, v) > now ||
			    (c && (c->when & WHEN_DOUBT || !(v->check->when & WHEN_DOUBT))))
				continue;
			c = v->check;
			ret->area = h->objects[i]->area;
			ret->object = h->objects[i]->name;
		}
	if (!c)
		return false;
	for (size_t i = 0; i < h->n_objects; i++)
		for (size_t k = 0; k < h->objects[i]->n_verdicts; k++) {
			struct verdict *v = &h->objects[i]->verdicts[k];
			if (v->check != c)
				continue;
			v->under_way = true;
			v->started_at = now;
		}
	ret->program = c;
	ret->exclusive = !(c->when & WHEN_PERIODIC);
	return true;
}

bool health_due(struct health *h, int64_t now, struct health_pass *ret)
{
	bool program = false;
	size_t n = under_way(h, &program);
	struct object *o;

	*ret = (struct health_pass){ .since = h->klog_seq };
	if (n < HEALTH_PARALLEL && (o = due_longest(h, now))) {
		begin(o, now, ret);
		return true;
	}
	return !program && program_begins(h, now, ret);
}

int64_t health_deadline(const struct health *h)
{
	bool program = false;
	int64_t at = INT64_MAX;
	bool full = under_way(h, &program) >= HEALTH_PARALLEL;

	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *o = h->objects[i];
		if (!full)
			at = MO_MIN(at, object_due(h, o));
		if (health_blocked(o))
			at = MO_MIN(at, o->stuck_reported_at + health_interval(h, o));
		for (size_t k = 0; !program && k < o->n_verdicts; k++)
			at = MO_MIN(at, program_due(h, &o->verdicts[k]));
	}
	for (size_t i = 0; i < h->n_orders; i++)
		if (!h->orders[i].done)
			at = MO_MIN(at, health_order_ends(&h->orders[i]));
	return at;
}

/* ---- orders */

static bool meant(const struct health *h, const struct command *c)
{
	return c->kind == CMD_CHECK && (!c->boot_id || mo_streq(c->boot_id, h->boot_id));
}

static bool repeated(const struct health *h, const struct order *o, const struct command *commands,
		     size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (meant(h, &commands[i]) && commands[i].job == o->job &&
		    commands[i].attempt == o->attempt)
			return true;
	return false;
}

static bool known(const struct health *h, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < h->n_orders; i++)
		if (h->orders[i].job == job && h->orders[i].attempt == attempt)
			return true;
	return false;
}

void health_orders(struct health *h, const struct command *commands, size_t n, int64_t now)
{
	bool changed = false;

	for (size_t i = h->n_orders; i-- > 0;)
		if (!repeated(h, &h->orders[i], commands, n)) {
			memmove(&h->orders[i], &h->orders[i + 1],
				(--h->n_orders - i) * sizeof(*h->orders));
			changed = true;
		}
	for (size_t i = 0; i < n; i++) {
		if (!meant(h, &commands[i]) || known(h, commands[i].job, commands[i].attempt) ||
		    h->n_orders >= CHECKED_MAX)
			continue;
		if (!h->orders)
			h->orders = mo_alloc_array(CHECKED_MAX, sizeof(*h->orders));
		h->orders[h->n_orders++] = (struct order){ .job = commands[i].job,
							   .attempt = commands[i].attempt,
							   .thorough = commands[i].thorough,
							   .at = now };
		for (size_t k = 0; k < h->n_objects; k++)
			h->objects[k]->next = MO_MIN(h->objects[k]->next, now);
		changed = true;
	}
	if (changed)
		health_settle(h, now);
}
