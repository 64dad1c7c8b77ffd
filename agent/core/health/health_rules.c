/* One check against one probe: what is measured, its limits, and the sentence that says so.
 * Called by health_answers.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/health/health_finding.h"
#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"
#include "lib/base/buf.h"

#define SHARE_MOST 1.1 /* the two are not read at quite the same moment */
/* different values of one reading among equal devices */
#define GROUPS_MAX 16

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

static void pass_value(const struct health_check *c, const struct probe *p, struct finding *f)
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
		finding_absent(f, c, p);
		return;
	}
	_cleanup_(mo_freep) char *number = rule_number(worst->key, worst->value),
				 *limit = finding_limit_text(c, worst->key, worst->value, 1, "");
	finding_found(f, c, state, p, mo_printf("%s is %s%s", worst->key, number, limit));
}

/* ---- counters */

static void lines_of(const struct health *h, const struct object *o, const struct health_check *c,
		     struct finding *f)
{
	const struct health_counter *k = health_counter_find(h, o, c->reading);

	for (size_t i = 0; k && o->area == PROBE_KLOG && i < k->n_lines; i++)
		mo_strs_add(&f->evidence, &f->n_evidence, k->lines[i]);
}

/* Of the log: its lines. Of a device: what was there before the first probe in this boot is
 * reported as what the check's `history` says; what came since is a finding. */
static void pass_log(const struct health *h, const struct object *o, const struct health_check *c,
		     const struct probe *p, double n, const char *when, struct finding *f)
{
	int state = rule_limits(c, n);
	_cleanup_(mo_freep) char *number = rule_number(c->reading, n);

	finding_found(f, c, state, p,
		      mo_printf("%s %s of the kernel's log %s", number, n == 1 ? "line" : "lines",
				when));
	if (state != CHECK_OK)
		lines_of(h, o, c, f);
}

static void pass_since_boot(const struct health *h, const struct object *o,
			    const struct health_check *c, const struct probe *p, struct finding *f)
{
	const struct health_counter *k = health_counter_find(h, o, c->reading);

	if (k && o->area == PROBE_KLOG) {
		f->count = whole(k->total);
		pass_log(h, o, c, p, k->total, "since boot", f);
		return;
	}
	if (!k || reading_value(p, c->reading) == MO_NONE_F) {
		finding_absent(f, c, p);
		f->clears_nothing |= k != NULL; /* it counted before */
		return;
	}
	double growth = k->last - k->base;
	f->count = whole(k->last);
	int state = rule_limits(c, growth), before = MO_MIN(rule_limits(c, k->base), c->history);
	bool old = before > state;
	_cleanup_(mo_freep) char *grown = rule_number(c->reading, growth),
				 *base = rule_number(c->reading, k->base),
				 *limit = finding_limit_text(c, c->reading, old ? k->base : growth,
							     1, ""),
				 *again = k->restarts > 0
						  ? mo_printf("; it began anew at 0, %lld %s",
							      (long long)k->restarts,
							      k->restarts == 1 ? "time" : "times")
						  : mo_strdup("");
	if (old)
		finding_found(f, c, before, p,
			      mo_printf("%s stood at %s when it was first looked at in this "
					"boot%s; it "
					"%s%s%s",
					c->reading, base, limit,
					growth > 0 ? "grew since by " : "has not grown since",
					growth > 0 ? grown : "", again));
	else
		finding_found(f, c, state, p,
			      mo_printf("%s grew by %s in this boot%s%s", c->reading, grown, limit,
					again));
}

static void pass_per_hour(const struct health *h, const struct object *o,
			  const struct health_check *c, const struct probe *p, struct finding *f)
{
	double rate = o->area == PROBE_KLOG || reading_value(p, c->reading) != MO_NONE_F
			      ? health_per_hour(h, o, c)
			      : MO_NONE_F;

	if (rate == MO_NONE_F) {
		finding_absent(f, c, p);
		return;
	}
	f->count = whole(health_counter_find(h, o, c->id)->last);
	if (o->area == PROBE_KLOG) {
		pass_log(h, o, c, p, rate, "in an hour", f);
		return;
	}
	_cleanup_(mo_freep) char *number = rule_number(c->reading, rate),
				 *limit = finding_limit_text(c, c->reading, rate, 1, "");
	finding_found(f, c, rule_limits(c, rate), p,
		      mo_printf("%s grew by %s in an hour%s", c->reading, number, limit));
}

/* ---- two readings */

/* Residencies count in steps of another counter. Only growth tells: some firmware says 100 % at
 * idle as an absolute value. More than all of the time is nonsense, which nothing follows from. */
static void pass_share(struct verdict *v, const struct probe *p, struct finding *f)
{
	const struct health_check *c = v->check;
	double value = reading_value(p, c->reading), of = reading_value(p, c->of),
	       d = value - v->last, d_of = of - v->last_of;
	bool second = v->last != MO_NONE_F && d >= 0 && d_of > 0;

	if (value == MO_NONE_F || of == MO_NONE_F) {
		v->last = MO_NONE_F;
		finding_absent(f, c, p);
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
		finding_found(f, c, CHECK_UNKNOWN, p,
			      mo_printf("%s grew by %.15g while %s grew by %.15g: it cannot be "
					"read, a "
					"share of the time is at most 1",
					c->reading, d, c->of, d_of));
		return;
	}
	_cleanup_(mo_freep) char *limit = finding_limit_text(c, c->reading, share, 100, " %");
	finding_found(f, c, rule_limits(c, share), p,
		      mo_printf("%s was %.3g %% of the time between two looks%s", c->reading,
				share * 100, limit));
}

static void pass_pair(const struct health_check *c, const struct probe *p, struct finding *f)
{
	double value = reading_value(p, c->reading), of = reading_value(p, c->of);
	bool ratio = c->measure == MEASURE_RATIO_OF;

	if (value == MO_NONE_F || of == MO_NONE_F || (ratio && of == 0)) {
		finding_absent(f, c, p);
		return;
	}
	double x = ratio ? value / of : of - value;
	_cleanup_(mo_freep) char *a = rule_number(c->reading, value), *b = rule_number(c->of, of),
				 *d = rule_number(c->reading, ratio ? x : fabs(x)),
				 *limit = finding_limit_text(c, c->reading, x, ratio ? 100 : 1,
							     ratio ? " %" : "");
	if (ratio)
		finding_found(f, c, rule_limits(c, x), p,
			      mo_printf("%s is %s, %.3g %% of %s (%s)%s", c->reading, a, x * 100,
					c->of, b, limit));
	else
		finding_found(f, c, rule_limits(c, x), p,
			      mo_printf("%s is %s, %s %s than %s (%s)%s", c->reading, a, d,
					x < 0 ? "more" : "less", c->of, b,
					mo_streq(limit, ", above 0") ? "" : limit));
}

/* ---- texts */

static void pass_text(const struct health_check *c, const struct probe *p, struct finding *f)
{
	const char *text =
		mo_streq(c->reading, "problem") ? p->problem : reading_text(p, c->reading);

	const char *wanted = c->of ? reading_text(p, c->of) : NULL;
	if (c->of && !wanted) {
		f->state = CHECK_OK;
		return;
	}
	if (!text) {
		finding_absent(f, c, p);
		return;
	}
	if (c->of) {
		finding_found(f, c, mo_streq(text, wanted) ? CHECK_OK : c->otherwise, p,
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
	finding_found(f, c, c->otherwise, p,
		      c->n_expect ? mo_printf("%s is %s%s", c->reading, text, b.data)
				  : mo_strdup(text));
}

/* No probe reads it: it is what the agent knows of its own discovery. */
static void pass_discovery(const struct health *h, const struct health_check *c,
			   const struct probe *p, struct finding *f)
{
	finding_found(f, c,
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
static void pass_same(const struct health *h, const struct object *o, const struct health_check *c,
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
		finding_absent(f, c, p);
	else if (n == 0 || mo_streq(own, groups[most].value))
		f->state = CHECK_OK;
	else
		finding_found(f, c, c->otherwise, p,
			      mo_printf("%s is %s, that of %zu others is %s", c->reading, own,
					groups[most].n, groups[most].value));
	for (size_t k = 0; k < n; k++)
		free(groups[k].value);
}

void rule_pass(const struct health *h, const struct object *o, struct verdict *v,
	       const struct probe *p, struct finding *f)
{
	const struct health_check *c = v->check;

	*f = (struct finding){ .state = -1, .count = MO_NONE };
	if (mo_streq(c->reading, "discovery")) {
		pass_discovery(h, c, p, f);
		return;
	}
	switch (c->measure) {
	case MEASURE_VALUE:
		count_rises(h, o, c, f);
		pass_value(c, p, f);
		break;
	case MEASURE_SINCE_BOOT: pass_since_boot(h, o, c, p, f); break;
	case MEASURE_PER_HOUR: pass_per_hour(h, o, c, p, f); break;
	case MEASURE_SHARE: pass_share(v, p, f); break;
	case MEASURE_LESS_OF:
	case MEASURE_RATIO_OF:
		count_rises(h, o, c, f);
		pass_pair(c, p, f);
		break;
	case MEASURE_SAME: pass_same(h, o, c, p, f); break;
	default: pass_text(c, p, f); break;
	}
}

/* ---- derived readings */
