/* What counters did in this boot: where each stood when it was first probed, where it stood
 * over the window of a rate, and what the kernel's log counted so far. Taken at every probe,
 * whichever check judges it. Stored over restarts of the agent (health_save()); a new
 * boot, another device in the same place, or a counter that went backwards begins anew: drivers
 * count from 0 again after a reset, and a counter that reading clears shows what is new. At most
 * MO_COUNTERS_MAX are kept; those of objects that are gone make room. */
#include <string.h>

#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

#define HOUR_US 3600000000LL
#define MOMENTS_OF_A_WINDOW 32
/* growth alone is written this often: a baseline that is older loses nothing but the time of the
 * growth */
#define REMEMBER_US 300000000LL

static struct health_counter *find(const struct health *h, const struct object *o,
				   const char *reading)
{
	for (size_t i = 0; i < h->n_counters; i++) {
		struct health_counter *k = &h->counters[i];
		if (k->area == o->area && mo_streq(k->object, o->name) &&
		    mo_streq(k->reading, reading))
			return k;
	}
	return NULL;
}

const struct health_counter *health_counter_find(const struct health *h, const struct object *o,
						 const char *reading)
{
	return find(h, o, reading);
}

static bool make_room(struct health *h)
{
	for (size_t i = 0; h->n_counters >= MO_COUNTERS_MAX && i < h->n_counters; i++)
		if (!health_object(h, h->counters[i].area, h->counters[i].object))
			mo_vec_remove(&health_counter_desc, h->counters, &h->n_counters, i);
	return h->n_counters < MO_COUNTERS_MAX;
}

/* NULL: there are too many. */
static struct health_counter *find_or_add(struct health *h, const struct object *o,
					  const char *reading)
{
	struct health_counter *k = find(h, o, reading);

	if (k || !make_room(h))
		return k;
	k = mo_vec_add(&health_counter_desc, (void **)&h->counters, &h->n_counters);
	k->area = o->area;
	mo_str_set(&k->object, o->name);
	mo_str_set(&k->identity, o->identity);
	mo_str_set(&k->reading, reading);
	h->unsaved = true;
	return k;
}

static void add_moment(struct health_counter *k, int64_t at, double value)
{
	mo_assert(at >= 0);
	if (k->n_moments >= MO_MOMENTS_MAX)
		mo_vec_remove(&health_moment_desc, k->moments, &k->n_moments, 0);
	struct health_moment *m = MO_ADD(k, moments, &health_moment_desc);
	*m = (struct health_moment){ at, value };
}

/* A rate needs the moments before something happened; while a counter stands still, or grows
 * evenly, few are kept. */
static void take_moment(struct health_counter *k, double value, int64_t window, int64_t now)
{
	if (k->n_moments && value != k->last &&
	    k->moments[k->n_moments - 1].at <= k->seen - window / MOMENTS_OF_A_WINDOW)
		add_moment(k, k->seen, k->last);
	if (!k->n_moments)
		add_moment(k, now, value);
	while (k->n_moments > 1 && k->moments[1].at <= now - window)
		mo_vec_remove(&health_moment_desc, k->moments, &k->n_moments, 0);
}

/* Counters of gpu_metrics, which a reset GPU may write half: one probe that is below the one
 * before says nothing. Others are taken at once: they may be cleared by being read. */
static bool may_slip(const struct health_check *c)
{
	static const char *const keys[] = { "pcie_replay", "pcie_nak", "pcie_l0_recovery" };

	for (size_t i = 0; i < ELEMENTSOF(keys); i++)
		if (mo_streq(keys[i], c->reading))
			return true;
	return false;
}

static void take(struct health *h, struct health_counter *k, const struct health_check *c,
		 double value, int64_t now)
{
	bool slipped = k->last != MO_NONE_F && value < k->last && may_slip(c) && !k->fell;

	k->fell = slipped;
	if (slipped)
		return;
	if (k->base == MO_NONE_F) {
		k->base = value;
		h->unsaved = true;
	} else if (k->last != MO_NONE_F && value < k->last) {
		k->base = 0;
		k->restarts = k->restarts == MO_NONE ? 1 : k->restarts + 1;
		if (k->n_moments) {
			mo_vec_clear(&health_moment_desc, (void **)&k->moments, &k->n_moments);
			add_moment(k, k->seen, 0);
		}
		h->unsaved = true;
	}
	k->last = value;
	k->seen = now;
}

/* Of the log: the sum of this boot, once the probe was added to it. */
static double value_of(const struct health *h, const struct object *o, const struct health_check *c,
		       const struct probe *p)
{
	const struct health_counter *total = o->area == PROBE_KLOG ? find(h, o, c->reading) : NULL;
	return total ? total->total : reading_value(p, c->reading);
}

static void take_rate(struct health *h, const struct object *o, const struct health_check *c,
		      const struct probe *p, double value, int64_t now)
{
	struct health_counter *k = find_or_add(h, o, c->id);
	double more = o->area == PROBE_KLOG ? reading_value(p, c->reading) : 0;

	if (!k)
		return;
	/* the log was judged before: what this probe counted is new */
	if (!k->n_moments && h->klog_known && more > 0)
		add_moment(k, now, value - more);
	take_moment(k, value, c->window_us, now);
	take(h, k, c, value, now);
}

/* What a check that `rises` measures; MO_NONE_F: it cannot say. */
static double risen(const struct health_check *c, const struct probe *p)
{
	double value = reading_value(p, c->reading), of = c->of ? reading_value(p, c->of) : 0;

	if (value == MO_NONE_F || of == MO_NONE_F)
		return MO_NONE_F;
	return c->measure == MEASURE_LESS_OF ? of - value : value;
}

/* Only rises add up: what gets better and then worse again is worse than it was, and what gets
 * better is nothing that a person has not seen. */
static void take_rise(struct health *h, const struct object *o, const struct health_check *c,
		      const struct probe *p, int64_t now)
{
	double x = risen(c, p);
	struct health_counter *k =
		x == MO_NONE_F || (x <= 0 && !find(h, o, c->id)) ? NULL : find_or_add(h, o, c->id);

	if (!k)
		return;
	h->unsaved |= x != k->last;
	k->total = k->last == MO_NONE_F ? x : k->total + MO_MAX(x - MO_MAX(k->last, 0), 0);
	k->last = x;
	k->seen = now;
}

void health_counters_take(struct health *h, const struct object *o, const struct probe *p,
			  int64_t now)
{
	for (size_t i = 0; i < o->n_verdicts; i++) {
		const struct health_check *c = o->verdicts[i].check;
		bool rate = c->measure == MEASURE_PER_HOUR,
		     boot = c->measure == MEASURE_SINCE_BOOT && o->area != PROBE_KLOG;
		if (c->rises && health_applies(h, c))
			take_rise(h, o, c, p, now);
		double value = c->reading && (rate || boot) && health_applies(h, c)
				       ? value_of(h, o, c, p)
				       : MO_NONE_F;
		if (value == MO_NONE_F)
			continue;
		struct health_counter *k = boot ? find_or_add(h, o, c->reading) : NULL;
		if (k)
			take(h, k, c, value, now);
		if (rate)
			take_rate(h, o, c, p, value, now);
	}
	h->probed_at = now;
}

double health_per_hour(const struct health *h, const struct object *o, const struct health_check *c)
{
	const struct health_counter *k = find(h, o, c->id);
	int64_t from = k ? k->seen - c->window_us : 0;
	size_t i = 0;

	if (!k || !k->n_moments)
		return MO_NONE_F;
	while (i + 1 < k->n_moments && k->moments[i + 1].at <= from)
		i++;
	const struct health_moment a = k->moments[i],
				   b = i + 1 < k->n_moments
					       ? k->moments[i + 1]
					       : (struct health_moment){ k->seen, k->last };
	double then = a.value;
	/* nothing was probed for a while: it grew evenly */
	if (a.at < from && b.at > a.at)
		then += (b.value - a.value) * (double)(from - a.at) / (double)(b.at - a.at);
	return (k->last - then) * HOUR_US / (double)c->window_us;
}

double health_klog_total(struct health *h, const struct object *o, const char *rule, double more,
			 const struct probe *p)
{
	struct health_counter *k = find_or_add(h, o, rule);

	if (!k)
		return more;
	if (k->total == MO_NONE_F)
		k->total = 0;
	k->total += more;
	for (size_t i = 1; more > 0 && k->n_lines < EVIDENCE_MAX; i++) {
		_cleanup_(mo_freep) char *key = mo_printf("line.%s.%zu", rule, i);
		const char *line = reading_text(p, key);
		if (!line)
			break;
		mo_strs_add(&k->lines, &k->n_lines, line);
	}
	h->unsaved |= more > 0;
	return k->total;
}

/* A device that does not say who it is for the moment (NULL) is taken for the one that was
 * there. */
bool health_counters_of(struct health *h, const struct object *o, const char *identity)
{
	bool another = false;

	for (size_t i = h->n_counters; identity && i-- > 0;) {
		struct health_counter *k = &h->counters[i];
		if (k->area != o->area || !mo_streq(k->object, o->name) ||
		    mo_streq(k->identity, identity))
			continue;
		if (k->identity) {
			mo_vec_remove(&health_counter_desc, h->counters, &h->n_counters, i);
			another = true;
		} else {
			mo_str_set(&k->identity, identity);
		}
		h->unsaved = true;
	}
	return another;
}

bool health_unsaved(const struct health *h)
{
	return h->unsaved || (h->n_counters && h->probed_at >= h->saved_at + REMEMBER_US);
}

void health_save(struct health *h, struct health_memory *ret)
{
	mo_str_set(&ret->boot_id, h->boot_id);
	ret->version = h->reported.version;
	ret->klog_seq = h->klog_seq;
	ret->gpus = h->gpus_seen;
	for (size_t i = 0; i < h->n_counters; i++)
		mo_desc_copy(&health_counter_desc, MO_ADD(ret, counters, &health_counter_desc),
			     &h->counters[i]);
	h->unsaved = false;
	h->saved_at = h->probed_at;
}

void health_load(struct health *h, const struct health_memory *m)
{
	if (m->version != MO_NONE)
		h->reported.version = MO_MAX(h->reported.version, m->version + 1);
	if (!mo_streq(m->boot_id, h->boot_id))
		return;
	h->begun_anew = true;
	h->klog_known = m->klog_seq != MO_NONE && m->klog_seq >= 0;
	h->klog_seq = h->klog_known ? m->klog_seq : -1;
	h->gpus_seen = m->gpus == MO_NONE ? 0 : m->gpus;
	for (size_t i = 0; i < m->n_counters; i++)
		if (m->counters[i].object && m->counters[i].reading)
			mo_desc_copy(&health_counter_desc,
				     mo_vec_add(&health_counter_desc, (void **)&h->counters,
						&h->n_counters),
				     &m->counters[i]);
}
