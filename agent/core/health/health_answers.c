/* What an answer means for whom: readings, a failure to read, the end of a program (see
 * health.h). Called by agent/health.c. */
#include "agent/core/health/health.h"
#include "agent/core/health/health_derive.h"
#include "agent/core/health/health_finding.h"
#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"

#define THROTTLE_MOST 1.1 /* share of the time; more is nonsense */
/* a GPU that cannot be read makes the host due, not oftener than this */
#define HOST_NOW_US 5000000LL

static void pass_ended(const struct health *h, struct object *o, int64_t now)
{
	bool pending = false, settles = false;

	if (!o->sensors_only)
		o->full_at = o->asked_at;
	for (size_t i = 0; i < o->n_verdicts; i++) {
		const struct verdict *v = &o->verdicts[i];

		if (v->check->n_argv || !health_applies(h, v->check) || !verdict_pending(v))
			continue;
		pending = true;
		settles |= health_settles(o, v->check, now);
	}
	if (!o->sensors_only) {
		o->next = now + health_interval(h, o) + o->spread_us;
		o->spread_us = 0;
		if (pending)
			o->next = MO_MIN(o->next, now + (settles ? HEALTH_SETTLE_AGAIN_US
								 : HEALTH_AGAIN_US));
	}
	for (size_t i = 0; i < h->n_orders; i++)
		/* it was under way when the order came */
		if (!h->orders[i].done && (o->full_at == MO_NONE || o->full_at < h->orders[i].at))
			o->next = now;
	if (o->area == PROBE_GPU ? h->intervals.sensors_us < h->intervals.device_us
				 : o->area == PROBE_NIC && now < h->traffic_until)
		o->next_sensors = now + h->intervals.sensors_us;
	else
		o->next_sensors = INT64_MAX;
}

static void take_sensors(struct object *o, const struct probe *p)
{
	static const char *const throttle[] = { "metrics_counter", "prochot_residency",
						"socket_thm_residency", "vr_thm_residency",
						"hbm_thm_residency" };
	struct gpu_sensors *s = &o->sensors;
	double d[ELEMENTSOF(throttle)], most = MO_NONE_F;

	for (size_t i = 0; i < ELEMENTSOF(throttle); i++) {
		double value = reading_value(p, throttle[i]), base = o->throttle_base[i];
		d[i] = value != MO_NONE_F && base != MO_NONE_F && value >= base ? value - base
										: MO_NONE_F;
		o->throttle_base[i] = value;
		if (i && d[0] > 0 && d[i] != MO_NONE_F && d[i] <= d[0] * THROTTLE_MOST)
			most = MO_MAX(most, 100 * d[i] / d[0]);
	}
	s->temp_c = reading_value(p, "temp_junction_c");
	s->mem_temp_c = reading_value(p, "temp_mem_c");
	s->power_w = reading_value(p, "power_w");
	s->clock_mhz = reading_value(p, "gfx_clock_mhz");
	s->busy_pct = reading_value(p, "busy_pct");
	s->vram_used_bytes = reading_value(p, "vram_used_bytes");
	s->throttle_pct = most;
	o->sensors_new = true;
}

static void take_counts(struct object *o, const struct probe *p)
{
	const struct {
		const char *key;
		int64_t *to;
	} counts[] = { { "ras_ue", &o->sensors.ue },
		       { "ras_ce", &o->sensors.ce },
		       { "pcie_replay", &o->sensors.pcie_replay } };

	for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
		double x = reading_value(p, counts[i].key);
		*counts[i].to = x == MO_NONE_F ? MO_NONE : (int64_t)x;
	}
}

static int64_t moments_of_now(const struct health *h, const struct object *o)
{
	return WHEN_PERIODIC | (health_idle(h, o) ? WHEN_PREFLIGHT : 0) |
	       (health_open_order(h) ? WHEN_FAILURE : 0) | (o->epilog ? WHEN_EPILOG : 0);
}

static void judge(struct health *h, struct object *o, struct verdict *v, const struct probe *p,
		  int64_t now)
{
	struct finding f = { .state = CHECK_OK, .count = MO_NONE, .clears_nothing = true };

	/* a job that has the GPU, or a program of ours, is to give nothing back */
	if (!v->check->settle_us || (health_idle(h, o) && !health_loaded(h)))
		rule_pass(h, o, v, p, &f);
	f.early = health_settles(o, v->check, now);
	health_note(v, &f);
	verdict_judge(h, v, &f, now);
	finding_done(&f);
}

static bool all_seen(const struct health *h, int area)
{
	for (size_t i = 0; i < h->n_objects; i++)
		if (h->objects[i]->area == area && !h->objects[i]->seen)
			return false;
	return true;
}

/* Equal devices can be compared when all have answered; the last one to do so is the moment to
 * judge the others too. */
static void judge_same(struct health *h, int area, int64_t now)
{
	if (!all_seen(h, area))
		return;
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		for (size_t k = 0; o->area == area && k < o->n_verdicts; k++)
			if (o->verdicts[k].check->measure == MEASURE_SAME &&
			    !o->verdicts[k].probed && health_applies(h, o->verdicts[k].check) &&
			    o->last.n_readings)
				judge(h, o, &o->verdicts[k], &o->last, now);
	}
}

static void judge_object(struct health *h, struct object *o, const struct probe *p, int64_t now)
{
	int64_t when = moments_of_now(h, o);

	for (size_t i = 0; i < o->n_verdicts; i++) {
		struct verdict *v = &o->verdicts[i];
		if (v->check->n_argv || !(v->check->when & when) || !health_applies(h, v->check) ||
		    (v->check->measure == MEASURE_SAME && (!v->probed || !all_seen(h, o->area))))
			continue;
		judge(h, o, v, p, now);
	}
	o->epilog = false;
	judge_same(h, o->area, now);
}

static void take_klog(struct health *h, struct object *o, const struct probe *p)
{
	double seq = reading_value(p, "last_seq");

	for (size_t i = 0; i < o->n_verdicts; i++) {
		const struct health_check *c = o->verdicts[i].check;
		double more = c->reading ? reading_value(p, c->reading) : MO_NONE_F;
		if (more != MO_NONE_F)
			health_klog_total(h, o, c->reading, more, p);
	}
	if (seq != MO_NONE_F && (int64_t)seq != h->klog_seq) {
		h->klog_seq = (int64_t)seq;
		h->unsaved = true;
	}
}

static void host_now(struct health *h, int64_t now)
{
	struct object *host = health_object(h, PROBE_HOST, "host");

	if (host && (host->asked_at == MO_NONE || host->asked_at <= now - HOST_NOW_US))
		host->next = MO_MIN(host->next, now);
}

/* Another device is in its place. */
static void forget_probes(struct object *o)
{
	for (size_t i = 0; i < o->n_verdicts; i++)
		o->verdicts[i].last = o->verdicts[i].last_of = MO_NONE_F;
}

static void count_gpus(struct health *h, const struct probe *p)
{
	double n = reading_value(p, "gpus_pci");

	if (n != MO_NONE_F && n > (double)h->gpus_seen) {
		h->gpus_seen = (int64_t)n;
		h->unsaved = true;
	}
}

void health_probe(struct health *h, const struct probe *p, int64_t now)
{
	struct object *o = health_object(h, p->area, p->object);

	if (!o)
		return;
	o->under_way = o->stuck = o->silent = false;
	if (o->area == PROBE_GPU) {
		take_sensors(o, p);
		health_activity_take(o, p, now);
		gpu_work_take(&o->work, reading_value(p, "busy_pct"),
			      reading_value(p, "mem_busy_pct"), reading_value(p, "power_w"), now);
	}
	if (o->area == PROBE_GPU || o->area == PROBE_NIC)
		health_traffic_take(o, p, now);
	if (!o->sensors_only) {
		o->sensors_new |= o->area == PROBE_NIC;
		if (o->area == PROBE_GPU)
			take_counts(o, p);
		if (health_counters_of(h, o, p->identity))
			forget_probes(o);
		if (p->identity)
			mo_str_set(&o->identity, p->identity);
		mo_desc_copy(&probe_desc, &o->last, p);
		o->seen = true;
		if (o->area == PROBE_KLOG)
			take_klog(h, o, p);
		if (o->area == PROBE_HOST)
			count_gpus(h, p);
		health_derive(h, o, &o->last);
		health_counters_take(h, o, &o->last, now);
		judge_object(h, o, &o->last, now);
		if (o->area == PROBE_KLOG)
			h->klog_known = h->klog_seq >= 0;
		if (o->area == PROBE_GPU && p->problem)
			host_now(h, now);
	}
	pass_ended(h, o, now);
	health_settle(h, now);
}

/* Only the check for what could not be read speaks of it, and what needs no reading: the others
 * keep what they found. */
static void judge_failure(struct health *h, struct object *o, const char *why, int64_t now)
{
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = o->area;
	p.problem = mo_strdup(why);
	for (size_t i = 0; i < o->n_verdicts; i++) {
		struct verdict *v = &o->verdicts[i];
		if ((mo_streq(v->check->reading, "problem") ||
		     mo_streq(v->check->reading, "discovery")) &&
		    health_applies(h, v->check))
			judge(h, o, v, &p, now);
		else if (!v->check->n_argv)
			v->probed = true;
	}
	mo_desc_done(&probe_desc, &p);
	o->seen = true;
	judge_same(h, o->area, now);
}

void health_failed(struct health *h, int area, const char *object, const char *why, bool stuck,
		   int64_t now)
{
	struct object *o = health_object(h, area, object);

	if (!o)
		return;
	o->under_way = false;
	o->stuck = stuck;
	o->silent = true;
	o->stuck_reported_at = now;
	judge_failure(h, o, why, now);
	if (o->area == PROBE_GPU)
		host_now(h, now);
	pass_ended(h, o, now);
	health_settle(h, now);
}

void health_silent(const struct health *h, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < h->n_objects; i++)
		if (h->objects[i]->area == PROBE_GPU &&
		    (h->objects[i]->silent || health_blocked(h->objects[i])))
			mo_strs_add(ret, n_ret, h->objects[i]->name);
}

void health_unstuck(struct health *h, int area, const char *object, int64_t now)
{
	struct object *o = health_object(h, area, object);

	if (!o || !o->stuck)
		return;
	o->stuck = false;
	o->next = MO_MAX(now, o->stuck_reported_at + health_interval(h, o));
}

static bool in(const char *name, char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(names[i], name))
			return true;
	return false;
}

void health_held(struct health *h, char *const *devices, size_t n, int64_t now)
{
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		bool held =
			in(o->area == PROBE_GPU || o->area == PROBE_NIC ? o->name
									: probe_area_names[o->area],
			   devices, n);
		if (held == o->held)
			continue;
		o->held = held;
		if (held) {
			o->stuck_reported_at = now;
			judge_failure(h, o,
				      "a process that read it for the discovery or for an agent "
				      "before this one is stuck in the kernel",
				      now);
		} else
			o->next = MO_MIN(o->next, now);
	}
	health_settle(h, now);
}

void health_tick(struct health *h, int64_t now)
{
	for (size_t i = 0; i < h->n_objects; i++) {
		struct object *o = h->objects[i];
		if (!health_blocked(o) || now < o->stuck_reported_at + health_interval(h, o))
			continue;
		o->stuck_reported_at = now;
		judge_failure(h, o, "the process that reads it is stuck in the kernel", now);
	}
	health_settle(h, now);
}

static const struct health_check *check_of(const struct health *h, const char *check)
{
	for (size_t i = 0; i < h->n_checks; i++)
		if (mo_streq(h->checks[i].id, check))
			return &h->checks[i];
	return NULL;
}

/* The next verdict of this check, from object *i on; NULL: no more. */
static struct verdict *next_of(struct health *h, const struct health_check *c, size_t *i)
{
	for (; *i < h->n_objects; ++*i)
		for (size_t k = 0; k < h->objects[*i]->n_verdicts; k++)
			if (h->objects[*i]->verdicts[k].check == c)
				return &h->objects[(*i)++]->verdicts[k];
	return NULL;
}

void health_program(struct health *h, const char *check, int code, const char *out, size_t n,
		    const char *problem, int64_t now)
{
	const struct health_check *c = check_of(h, check);
	size_t at = 0;
	struct verdict *v = c ? next_of(h, c, &at) : NULL;

	if (!v)
		return;
	if (c->area == PROBE_GPU)
		health_judge_lines(h, c, code, out, n, problem, now);
	else
		health_judge_program(h, v, code, out, n, problem, now);
	for (at = 0; (v = next_of(h, c, &at));) {
		v->under_way = false;
		v->next = verdict_pending(v)        ? now
			  : c->when & WHEN_PERIODIC ? now + c->window_us
						    : INT64_MAX;
	}
	health_program_left(h, c, now);
	health_settle(h, now);
}

void health_cancel(struct health *h, const char *check, int64_t now)
{
	const struct health_check *c = check_of(h, check);
	size_t at = 0;

	for (struct verdict *v; c && (v = next_of(h, c, &at));) {
		v->under_way = false;
		v->started_at = MO_NONE; /* for whoever ordered it, it has not run */
		v->next = c->when & (WHEN_PREFLIGHT | WHEN_EPILOG) ? now : INT64_MAX;
	}
	if (c)
		health_program_left(h, c, now);
	health_settle(h, now);
}

void health_gpus(const struct health *h, char ***ret, size_t *n_ret)
{
	for (size_t i = 0; i < h->n_objects; i++)
		if (h->objects[i]->area == PROBE_GPU && !health_blocked(h->objects[i]))
			mo_strs_add(ret, n_ret, h->objects[i]->name);
}

bool health_doubts(const struct health *h)
{
	for (size_t i = 0; i < h->n_checks; i++)
		if (h->checks[i].when & WHEN_DOUBT && health_applies(h, &h->checks[i]))
			return true;
	return false;
}
