/* One check against one probe: what is measured, its limits, and the sentence that says so.
 * Called by health_answers.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"
#include "lib/base/buf.h"
#include "lib/model/limits.h"

#define NVIDIA "10de:"
#define NUMA_FREE "numa_free_bytes."
#define NUMA_TOTAL "numa_total_bytes."
#define SHARE_MOST 1.1 /* the two are not read at quite the same moment */
/* different values of one reading among equal devices */
#define GROUPS_MAX 16

void finding_done(struct finding *f)
{
	free(f->text);
	mo_strs_clear(&f->evidence, &f->n_evidence);
	*f = (struct finding){ 0 };
}

int rule_limits(const struct health_check *c, double x)
{
	if ((c->crit_above != MO_NONE_F && x > c->crit_above) ||
	    (c->crit_below != MO_NONE_F && x < c->crit_below))
		return CHECK_CRIT;
	if ((c->warn_above != MO_NONE_F && x > c->warn_above) ||
	    (c->warn_below != MO_NONE_F && x < c->warn_below))
		return CHECK_WARN;
	return CHECK_OK;
}

char *rule_number(const char *reading, double x)
{
	if (strstr(reading, "_bytes") && fabs(x) >= 1024 * 1024)
		return mo_printf(fabs(x) >= 1e9 ? "%.1f GiB" : "%.1f MiB",
				 x / (fabs(x) >= 1e9 ? 1073741824.0 : 1048576.0));
	if (strstr(reading, "_share"))
		return mo_printf("%.3g %%", 100 * x);
	return mo_printf("%.6g", x);
}

/* ", above 100": the limit that x is beyond; an unspoken one is empty. */
static char *limit_text(const struct health_check *c, const char *unit_of, double x, double scale,
			const char *unit)
{
	bool crit = rule_limits(c, x) == CHECK_CRIT;
	double above = crit ? c->crit_above : c->warn_above,
	       below = crit ? c->crit_below : c->warn_below;
	bool is_above = above != MO_NONE_F && x > above;
	double limit = is_above ? above : below;

	if (limit == MO_NONE_F)
		return mo_strdup("");
	_cleanup_(mo_freep) char *number = rule_number(unit_of, limit * scale);
	return mo_printf(", %s %s%s", is_above ? "above" : "below", number, unit);
}

static void add_evidence(struct finding *f, const struct reading *r)
{
	if (f->n_evidence >= EVIDENCE_MAX)
		return;
	_cleanup_(mo_freep) char *number = r->text ? NULL : rule_number(r->key, r->value);
	_cleanup_(mo_freep) char *line = mo_printf("%s = %s", r->key, r->text ? r->text : number);
	mo_strs_add(&f->evidence, &f->n_evidence, line);
}

/* The readings that it rests on: the one that is named, its partner, and its parts (ras_ue.umc
 * of ras_ue). */
static void evidence(struct finding *f, const struct health_check *c, const struct probe *p)
{
	size_t n = strcspn(c->reading, "*");

	for (size_t i = 0; p->area != PROBE_KLOG && i < p->n_readings; i++) {
		const struct reading *r = &p->readings[i];
		bool part =
			(mo_starts_with(r->key, c->reading) && r->key[strlen(c->reading)] == '.') ||
			(c->of && mo_starts_with(r->key, c->of) && r->key[strlen(c->of)] == '.');
		bool many = c->reading[n] && strncmp(r->key, c->reading, n) == 0;
		if (mo_streq(r->key, c->reading) || mo_streq(r->key, c->of) || part || many)
			add_evidence(f, r);
	}
}

static void found(struct finding *f, const struct health_check *c, int state, const struct probe *p,
		  char *said)
{
	f->state = state;
	if (state != CHECK_OK) {
		f->text = mo_printf("%s: %s", c->what, said);
		evidence(f, c, p);
	}
	free(said);
}

/* With a problem it may only be unreadable for the moment: that clears nothing. */
static void absent(struct finding *f, const struct health_check *c, const struct probe *p)
{
	f->clears_nothing = p->problem != NULL;
	found(f, c, c->absent, p, mo_printf("%s is not there", c->reading));
}

/* ---- value */

static int64_t whole(double x)
{
	return x >= 0 && x < 9e18 ? (int64_t)x : MO_NONE;
}

static void count_rises(const struct health *h, const struct object *o,
			const struct health_check *c, struct finding *f)
{
	const struct health_counter *k = c->rises ? health_counter_find(h, o, c->id) : NULL;

	f->count = k ? whole(k->total) : MO_NONE;
}

static void look_value(const struct health_check *c, const struct probe *p, struct finding *f)
{
	size_t star = strcspn(c->reading, "*");
	const struct reading *worst = NULL;
	int state = -1;

	for (size_t i = 0; i < p->n_readings; i++) {
		const struct reading *r = &p->readings[i];
		bool meant = c->reading[star] ? strncmp(r->key, c->reading, star) == 0
					      : mo_streq(r->key, c->reading);
		if (!meant || r->value == MO_NONE_F)
			continue;
		int s = rule_limits(c, r->value);
		bool worse =
			!worst || s > state ||
			(s == state && (c->warn_below != MO_NONE_F || c->crit_below != MO_NONE_F
						? r->value < worst->value
						: r->value > worst->value));
		if (worse) {
			worst = r;
			state = s;
		}
	}
	if (!worst) {
		absent(f, c, p);
		return;
	}
	_cleanup_(mo_freep) char *number = rule_number(worst->key, worst->value),
				 *limit = limit_text(c, worst->key, worst->value, 1, "");
	found(f, c, state, p, mo_printf("%s is %s%s", worst->key, number, limit));
}

/* ---- counters */

static void lines_of(const struct health *h, const struct object *o, const struct health_check *c,
		     struct finding *f)
{
	const struct health_counter *k = health_counter_find(h, o, c->reading);

	for (size_t i = 0; k && o->area == PROBE_KLOG && i < k->n_lines; i++)
		mo_strs_add(&f->evidence, &f->n_evidence, k->lines[i]);
}

/* Of the log: its lines. Of a device: what was there before the first look in this boot is told
 * as what the check's `history` says; what came since is a finding. */
static void look_log(const struct health *h, const struct object *o, const struct health_check *c,
		     const struct probe *p, double n, const char *when, struct finding *f)
{
	int state = rule_limits(c, n);
	_cleanup_(mo_freep) char *number = rule_number(c->reading, n);

	found(f, c, state, p,
	      mo_printf("%s %s of the kernel's log %s", number, n == 1 ? "line" : "lines", when));
	if (state != CHECK_OK)
		lines_of(h, o, c, f);
}

static void look_since_boot(const struct health *h, const struct object *o,
			    const struct health_check *c, const struct probe *p, struct finding *f)
{
	const struct health_counter *k = health_counter_find(h, o, c->reading);

	if (k && o->area == PROBE_KLOG) {
		f->count = whole(k->total);
		look_log(h, o, c, p, k->total, "since boot", f);
		return;
	}
	if (!k || reading_value(p, c->reading) == MO_NONE_F) {
		absent(f, c, p);
		f->clears_nothing |= k != NULL; /* it counted before */
		return;
	}
	double growth = k->last - k->base;
	f->count = whole(k->last);
	int state = rule_limits(c, growth), before = MO_MIN(rule_limits(c, k->base), c->history);
	bool old = before > state;
	_cleanup_(mo_freep) char *grown = rule_number(c->reading, growth),
				 *base = rule_number(c->reading, k->base),
				 *limit = limit_text(c, c->reading, old ? k->base : growth, 1, ""),
				 *again = k->restarts > 0
						  ? mo_printf("; it began anew at 0, %lld %s",
							      (long long)k->restarts,
							      k->restarts == 1 ? "time" : "times")
						  : mo_strdup("");
	if (old)
		found(f, c, before, p,
		      mo_printf("%s stood at %s when it was first looked at in this boot%s; it "
				"%s%s%s",
				c->reading, base, limit,
				growth > 0 ? "grew since by " : "has not grown since",
				growth > 0 ? grown : "", again));
	else
		found(f, c, state, p,
		      mo_printf("%s grew by %s in this boot%s%s", c->reading, grown, limit, again));
}

static void look_per_hour(const struct health *h, const struct object *o,
			  const struct health_check *c, const struct probe *p, struct finding *f)
{
	double rate = o->area == PROBE_KLOG || reading_value(p, c->reading) != MO_NONE_F
			      ? health_per_hour(h, o, c)
			      : MO_NONE_F;

	if (rate == MO_NONE_F) {
		absent(f, c, p);
		return;
	}
	f->count = whole(health_counter_find(h, o, c->id)->last);
	if (o->area == PROBE_KLOG) {
		look_log(h, o, c, p, rate, "in an hour", f);
		return;
	}
	_cleanup_(mo_freep) char *number = rule_number(c->reading, rate),
				 *limit = limit_text(c, c->reading, rate, 1, "");
	found(f, c, rule_limits(c, rate), p,
	      mo_printf("%s grew by %s in an hour%s", c->reading, number, limit));
}

/* ---- two readings */

/* Residencies count in steps of another counter. Only growth tells: some firmware says 100 % at
 * idle as an absolute value. More than all of the time is nonsense, which nothing follows from. */
static void look_share(struct verdict *v, const struct probe *p, struct finding *f)
{
	const struct health_check *c = v->check;
	double value = reading_value(p, c->reading), of = reading_value(p, c->of),
	       d = value - v->last, d_of = of - v->last_of;
	bool second = v->last != MO_NONE_F && d >= 0 && d_of > 0;

	if (value == MO_NONE_F || of == MO_NONE_F) {
		v->last = MO_NONE_F;
		absent(f, c, p);
		return;
	}
	v->last = value;
	v->last_of = of;
	if (!second) {
		f->state = -1;
		return;
	}
	double share = d / d_of;
	if (share > SHARE_MOST) {
		found(f, c, CHECK_UNKNOWN, p,
		      mo_printf("%s grew by %.15g while %s grew by %.15g: it cannot be read, a "
				"share of the time is at most 1",
				c->reading, d, c->of, d_of));
		return;
	}
	_cleanup_(mo_freep) char *limit = limit_text(c, c->reading, share, 100, " %");
	found(f, c, rule_limits(c, share), p,
	      mo_printf("%s was %.3g %% of the time between two looks%s", c->reading, share * 100,
			limit));
}

static void look_pair(const struct health_check *c, const struct probe *p, struct finding *f)
{
	double value = reading_value(p, c->reading), of = reading_value(p, c->of);
	bool ratio = c->measure == MEASURE_RATIO_OF;

	if (value == MO_NONE_F || of == MO_NONE_F || (ratio && of == 0)) {
		absent(f, c, p);
		return;
	}
	double x = ratio ? value / of : of - value;
	_cleanup_(mo_freep) char *a = rule_number(c->reading, value), *b = rule_number(c->of, of),
				 *d = rule_number(c->reading, ratio ? x : fabs(x)),
				 *limit = limit_text(c, c->reading, x, ratio ? 100 : 1,
						     ratio ? " %" : "");
	if (ratio)
		found(f, c, rule_limits(c, x), p,
		      mo_printf("%s is %s, %.3g %% of %s (%s)%s", c->reading, a, x * 100, c->of, b,
				limit));
	else
		found(f, c, rule_limits(c, x), p,
		      mo_printf("%s is %s, %s %s than %s (%s)%s", c->reading, a, d,
				x < 0 ? "more" : "less", c->of, b,
				mo_streq(limit, ", above 0") ? "" : limit));
}

/* ---- texts */

static void look_text_value(const struct health_check *c, const struct probe *p, struct finding *f)
{
	const char *text =
		mo_streq(c->reading, "problem") ? p->problem : reading_text(p, c->reading);

	const char *wanted = c->of ? reading_text(p, c->of) : NULL;
	if (c->of && !wanted) {
		f->state = CHECK_OK;
		return;
	}
	if (!text) {
		absent(f, c, p);
		return;
	}
	if (c->of) {
		found(f, c, mo_streq(text, wanted) ? CHECK_OK : c->otherwise, p,
		      mo_printf("%s is %s, not %s", c->reading, text, wanted));
		return;
	}
	for (size_t i = 0; i < c->n_expect; i++)
		if (mo_streq(c->expect[i], text)) {
			f->state = CHECK_OK;
			return;
		}
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	for (size_t i = 0; i < c->n_expect; i++)
		mo_buf_printf(&b, "%s%s", i ? " or " : ", not ", c->expect[i]);
	found(f, c, c->otherwise, p,
	      c->n_expect ? mo_printf("%s is %s%s", c->reading, text, b.data) : mo_strdup(text));
}

/* No probe reads it: it is what the agent knows of its own discovery. */
static void look_discovery(const struct health *h, const struct health_check *c,
			   const struct probe *p, struct finding *f)
{
	found(f, c,
	      !h->discovery      ? CHECK_OK
	      : h->nothing_known ? CHECK_CRIT
				 : c->otherwise,
	      p, mo_strdup(h->discovery ? h->discovery : ""));
}

/* As a text, whatever it is; caller frees. NULL: it is not there. */
static char *shown(const struct probe *p, const char *key)
{
	const struct reading *r = reading_find(p, key);

	if (!r)
		return NULL;
	return r->text ? mo_strdup(r->text) : rule_number(key, r->value);
}

/* Against what most of the equal objects have; of two that are equally many, what the first
 * object of them has. */
static void look_same(const struct health *h, const struct object *o, const struct health_check *c,
		      const struct probe *p, struct finding *f)
{
	struct {
		char *value;
		size_t n;
	} groups[GROUPS_MAX];
	_cleanup_(mo_freep) char *own = shown(p, c->reading);
	size_t n = 0, most = 0;

	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *other = h->objects[i];
		_cleanup_(mo_freep) char *value = other->area != c->area ? NULL
						  : other == o           ? mo_strdup(own)
							       : shown(&other->last, c->reading);
		size_t k = 0;
		while (value && k < n && !mo_streq(groups[k].value, value))
			k++;
		if (!value || k >= GROUPS_MAX)
			continue;
		if (k == n) {
			groups[n].value = TAKE_PTR(value);
			groups[n++].n = 0;
		}
		groups[k].n++;
	}
	for (size_t k = 1; k < n; k++)
		most = groups[k].n > groups[most].n ? k : most;
	if (!own)
		absent(f, c, p);
	else if (n == 0 || mo_streq(own, groups[most].value))
		f->state = CHECK_OK;
	else
		found(f, c, c->otherwise, p,
		      mo_printf("%s is %s, that of %zu others is %s", c->reading, own,
				groups[most].n, groups[most].value));
	for (size_t k = 0; k < n; k++)
		free(groups[k].value);
}

void rule_look(const struct health *h, const struct object *o, struct verdict *v,
	       const struct probe *p, struct finding *f)
{
	const struct health_check *c = v->check;

	*f = (struct finding){ .state = -1, .count = MO_NONE };
	if (mo_streq(c->reading, "discovery")) {
		look_discovery(h, c, p, f);
		return;
	}
	switch (c->measure) {
	case MEASURE_VALUE:
		count_rises(h, o, c, f);
		look_value(c, p, f);
		break;
	case MEASURE_SINCE_BOOT: look_since_boot(h, o, c, p, f); break;
	case MEASURE_PER_HOUR: look_per_hour(h, o, c, p, f); break;
	case MEASURE_SHARE: look_share(v, p, f); break;
	case MEASURE_LESS_OF:
	case MEASURE_RATIO_OF:
		count_rises(h, o, c, f);
		look_pair(c, p, f);
		break;
	case MEASURE_SAME: look_same(h, o, c, p, f); break;
	default: look_text_value(c, p, f); break;
	}
}

/* ---- derived readings */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Among the GPUs that are busy, this one included; MO_NONE_F: fewer than three are. */
static double median_power(const struct health *h, const struct object *o, const struct probe *p)
{
	double values[MO_GPUS_PER_NODE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < h->n_objects && n < ELEMENTSOF(values); i++) {
		const struct probe *q = h->objects[i] == o ? p : &h->objects[i]->last;
		double power = reading_value(q, "power_w");
		if (h->objects[i]->area == PROBE_GPU && reading_value(q, "busy_pct") >= 90 &&
		    power != MO_NONE_F)
			values[n++] = power;
	}
	if (n < 3)
		return MO_NONE_F;
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Of the largest NUMA node: one with fewer modules than the others has a smaller part. */
static void derive_numa_totals(struct probe *p)
{
	size_t n_readings = p->n_readings;
	double most = 0;

	for (size_t i = 0; i < n_readings; i++)
		if (mo_starts_with(p->readings[i].key, NUMA_TOTAL))
			most = MO_MAX(most, p->readings[i].value);
	for (size_t i = 0; most > 0 && i < n_readings; i++) {
		if (!mo_starts_with(p->readings[i].key, NUMA_TOTAL))
			continue;
		_cleanup_(mo_freep) char *key =
			mo_printf("numa_total_share.%s", p->readings[i].key + strlen(NUMA_TOTAL));
		reading_add(p, key, p->readings[i].value / most);
	}
}

/* How many GPUs there should be, by whom: what agent.yaml says is said by a person; else the
 * most that one of the others says. */
static void derive_gpus(const struct health *h, struct probe *p)
{
	double pci = reading_value(p, "gpus_pci"), off = reading_value(p, "gpus_off_bus");
	_cleanup_(mo_buf_done) struct mo_buf missing = { 0 };
	int64_t there = pci == MO_NONE_F ? 0 : (int64_t)pci, n_missing = 0;
	size_t most = 0;

	for (size_t i = 0; i < h->n_objects; i++) {
		const struct object *o = h->objects[i];
		if (o->area != PROBE_GPU || !o->last.problem ||
		    !strstr(o->last.problem, PROBE_NO_DEVICE))
			continue;
		mo_buf_printf(&missing, "%s%s", missing.len ? " " : "", o->name);
		n_missing++;
	}
	const struct {
		int64_t n;
		const char *by;
	} known[] = {
		{ h->gpus_expected, "expect_gpus of agent.yaml" },
		{ h->gpus_seen, "the PCI bus, earlier in this boot" },
		{ there + n_missing, "what was found of this machine earlier in this boot" },
		{ there + (off == MO_NONE_F ? 0 : (int64_t)off),
		  "the driver (KFD), which still lists it" },
	};
	for (size_t i = 1; h->gpus_expected <= 0 && i < ELEMENTSOF(known); i++)
		most = most == 0 || known[i].n > known[most].n ? i : most;
	reading_add_int(p, "gpus_expected", known[most].n);
	reading_add_text(p, "gpus_expected.by", known[most].by);
	if (missing.len)
		reading_add_text(p, "gpus_pci.missing", missing.data);
}

/* Shares of what there is, so that small machines are judged by their own size. */
static void derive_host(const struct health *h, struct probe *p)
{
	double total = reading_value(p, "mem_total_bytes"), shm = reading_value(p, "shm_bytes");
	size_t n = 0, n_readings = p->n_readings;

	if (h->memory_expected > 0)
		reading_add_int(p, "mem_expected_bytes", h->memory_expected);
	derive_numa_totals(p);
	if (h->n_gpus)
		derive_gpus(h, p);
	for (size_t i = 0; i < n_readings; i++)
		n += mo_starts_with(p->readings[i].key, NUMA_FREE);
	for (size_t i = 0; total > 0 && i < n_readings; i++) {
		if (!mo_starts_with(p->readings[i].key, NUMA_FREE))
			continue;
		_cleanup_(mo_freep) char *key =
			mo_printf("numa_free_share.%s", p->readings[i].key + strlen(NUMA_FREE));
		reading_add(p, key, p->readings[i].value * (double)n / total);
	}
	if (total > 0 && shm != MO_NONE_F)
		reading_add(p, "shm_share", shm / total);
}

/* In the form of the expectation: with the memory's partition or without. */
static void derive_partition(const char *expected, struct probe *p)
{
	const char *compute = reading_text(p, "compute_partition"),
		   *memory = reading_text(p, "memory_partition");
	bool both = strchr(expected, '/') != NULL;
	_cleanup_(mo_freep) char *partition = !compute || (both && !memory) ? NULL
					      : both ? mo_printf("%s/%s", compute, memory)
						     : mo_strdup(compute);

	reading_add_text(p, "partition", partition);
	reading_add_text(p, "partition_expected", expected);
}

void health_derive(const struct health *h, const struct object *o, struct probe *p)
{
	double busy = reading_value(p, "busy_pct"), power = reading_value(p, "power_w"),
	       cap = reading_value(p, "power_cap_w");

	if (o->area == PROBE_HOST)
		derive_host(h, p);
	if (o->area != PROBE_GPU)
		return;
	if (h->partition_expected)
		derive_partition(h->partition_expected, p);
	if (health_idle(h, o))
		reading_add(p, "vram_held_bytes", reading_value(p, "vram_used_bytes"));
	if (busy >= 99 && power != MO_NONE_F && cap != MO_NONE_F && cap > 0)
		reading_add(p, "spinning_power_ratio", power / cap);
	/* those slow their links down while idle */
	if (reading_text(p, "device_id") && !mo_starts_with(reading_text(p, "device_id"), NVIDIA))
		reading_add(p, "pcie_speed_fixed_gts", reading_value(p, "pcie_speed_gts"));
	double median = busy >= 90 && power != MO_NONE_F ? median_power(h, o, p) : MO_NONE_F;
	if (median != MO_NONE_F && median > 0)
		reading_add(p, "power_of_median", power / median);
}
