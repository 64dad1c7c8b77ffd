/* Idle time of a rank by schedule, in closed form for any forward, backward and weight gradient:
 * the longest way through a schedule is a sum of pieces, and which way is the longest depends on
 * the three times alone, so the idle time is the largest of a few sums. Each row is such a way,
 * taken from the schedules of schedule.h; tests hold all of them against its simulation. Where F
 * = B = W they are the papers' formulas (Narayanan et al. 2021, Qi et al. 2023 and 2024,
 * DeepSeek-V3). V-half and V-min repeat a block that fits only F = B = W: otherwise they lose
 * time with every micro-batch. Callers: pipeline.c, time.c. */
#include "lib/plan/idle.h"

#include <math.h>

#include "lib/base/util.h"

/* A way: idle = f F + b B + w W. */
struct way {
	double f, b, w;
};

static double longest(const struct way *ways, size_t n, const struct way *x)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = MO_MAX(most, ways[i].f * x->f + ways[i].b * x->b + ways[i].w * x->w);
	return most;
}

static double idle_zb1p(double p, double m, const struct way *x)
{
	const struct way ways[] = { { p - 1, p - 1, -MO_MIN(m - 1, p - 1) },
				    { 0, p - 1, 0 },
				    { p - 1, 0, 0 } };

	return longest(ways, ELEMENTSOF(ways), x);
}

/* With fewer than 2p - 1 micro-batches q weight gradients are there to fill the end: all but
 * exact. */
static double idle_zbv(double p, double m, const struct way *x)
{
	double q = MO_MAX(MO_MIN(m - p, p - 1), 0), left = p - 1 - q;
	const struct way ways[] = {
		{ 0, p - 1, 1 - p },   { 0, (p - 1) / 2, 0 }, { p - 1.5, 1 - p / 2, 0 },
		{ 0.5, 0, p / 2 - 1 }, { 0, 0.5, p / 2 - 1 }, { p - 1.5, 0.5, 1 - p },
		{ p - 1, 0, 0.5 - p },
	};
	const struct way few[] = {
		{ MO_MAX(p - m, 0), p - 1, -q },
		{ left / 2, left / 2, 0 },
		{ 0, MO_MAX(left, (p - 1) / 2), 0 },
		{ MO_MAX(q, left), MO_MIN(q, left), -q },
	};

	return left > 0 ? longest(few, ELEMENTSOF(few), x) : longest(ways, ELEMENTSOF(ways), x);
}

/* A block's way with fewer micro-batches than stages: up and down once. */
static double idle_short(double p, double m, const struct way *x)
{
	return m < p ? (p - 1) * (x->f + x->b) - (m - 0.5) * x->w : 0;
}

/* F and B of the two directions run as one. */
static double idle_dualpipe(double p, const struct way *x)
{
	double h = p / 2;
	const struct way ways[] = { { h - 2, p - 2, -h },
				    { h - 3, p - 2, 1 - h },
				    { p - 2, 0, 0 },
				    { p - 2, h - 1, -h },
				    { h - 2, h - 1, 0 } };

	return longest(ways, ELEMENTSOF(ways), x);
}

/* What Primus' lists of V-half and V-min, checked where F = B = W, save at their ends against
 * ours: chunks of forward. */
static double saved(bool half, double p, double m, const struct way *x)
{
	if (m < p || p < 4)
		return 0;
	return half ? (fmod(p, 2) != 0 ? 0 : x->f) : fmod(p, 3) == 1 ? 0 : x->f / 2;
}

static double idle_v_half(double p, double m, const struct way *x)
{
	const struct way even[] = {
		{ p + 1 - m, m + p - 3, -m / 2 - p / 4 },
		{ p / 2, 1.5 * p - 2, -(p + 1) / 2 },
		{ (p - 1) / 2, 1.5 * p - 2, -p / 2 },
		{ m + p - 4, p + 2 - m, -(p + 1) / 2 },
		{ m + p / 2 - 4.5, p + 1.5 - m, 0.5 },
		{ (p - 1) / 2, p - 2.5, 0.5 },
		{ m + p - 3, p + 1 - m, -p / 2 - 1 },
		{ m + p - 4, p + 0.5 - m, 1 - p / 2 },
		{ p + 1.5 - m, m + p - 4, 1 - m / 2 - p / 4 },
		{ m + p / 2 - 2.5, p + 0.5 - m, -0.5 },
	};
	const struct way odd[] = {
		{ p - m, m + p - 2, p == 3 ? 0.5 - m : -m / 2 - (p + 1) / 4 },
		{ (p - 1) / 2, 1.5 * (p - 1), -p / 2 },
		{ m + p - 2, p - m, -p / 2 },
		{ m + p / 2 - 1, p - 1 - m, 0 },
		{ (p - 1) / 2, p - 1, -0.5 },
		{ m + p - 2, p - 1 - m, 1 - p / 2 },
		{ p / 2, p - 2, 0 },
	};

	return fmod(p, 2) != 0 ? longest(odd, ELEMENTSOF(odd), x)
			       : longest(even, ELEMENTSOF(even), x);
}

static double idle_v_min(double p, double m, const struct way *x)
{
	const struct way three[] = {
		{ (5 - m) / 2, m + 1, 1 - m },
		{ (m + 1) / 2, m / 2 + 2, 1 - m },
		{ (m + 3) / 2, (m + 3) / 2, 0.5 - m },
		{ 1.5, 3, -1 },
		{ 2, 2.5, -1 },
		{ m + 0.5, (7 - m) / 2, -(m + 1) / 2 },
		{ m, (7 - m) / 2, -m / 2 },
		{ 2.5, 1, -0.5 },
	};
	const struct way third0[] = {
		{ p + 0.5 - m, 2 * m + p - 4, 0.5 - m },
		{ p + 1.5 - m, 2 * m + p - 4.5, 0.5 - m },
		{ 2 * m + p - 4, p + 0.5 - m, 1 - m },
		{ 2 * m + p - 4.5, p + 1.5 - m, 0.5 - m },
		{ p * 4 / 3, (5 * p - 9) / 6, -(p + 6) / 6 },
		{ p * 5 / 6, (4 * p - 4.5) / 3, -(p + 6) / 6 },
	};
	const struct way third1[] = {
		{ p - m, 2 * m + p - 3, 0.5 - m },
		{ 2 * m + p - 3, p - m, 0.5 - m },
		{ (4 * p - 4) / 3, (5 * p - 5) / 6, -(p + 2) / 6 },
		{ (5 * p - 5) / 6, (4 * p - 4) / 3, -(p + 2) / 6 },
	};
	const struct way third2[] = {
		{ p - m, 2 * m + p - 3, 0.5 - m },
		{ 2 * m + p - 3, p - m, 0.5 - m },
		{ (5 * p - 8.5) / 3, (2 * p - 1) / 3, (2 - p) / 3 },
		{ (2 * p + 0.5) / 3, (5 * p - 10) / 3, (2 - p) / 3 },
	};

	switch ((int64_t)p % 3) {
	case 0:
		return p == 3 ? longest(three, ELEMENTSOF(three), x)
			      : longest(third0, ELEMENTSOF(third0), x);
	case 1: return longest(third1, ELEMENTSOF(third1), x);
	default: return longest(third2, ELEMENTSOF(third2), x);
	}
}

double pipeline_idle(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches, double f,
		     double b, double w)
{
	const struct way x = { f, b, w };
	double p = (double)pp, m = (double)micro_batches;

	if (pp <= 1)
		return 0;
	if (mo_streq(schedule, "zb1p"))
		return idle_zb1p(p, m, &x);
	if (mo_streq(schedule, "dualpipe"))
		return idle_dualpipe(p, &x);
	if (mo_streq(schedule, "zbv") ||
	    ((mo_streq(schedule, "v-half") || mo_streq(schedule, "v-min")) && pp == 2))
		return idle_zbv(p, m, &x);
	if (mo_streq(schedule, "v-half"))
		return fmax(idle_v_half(p, m, &x), idle_short(p, m, &x)) - saved(true, p, m, &x);
	if (mo_streq(schedule, "v-min"))
		return fmax(idle_v_min(p, m, &x), idle_short(p, m, &x)) - saved(false, p, m, &x);
	return (p - 1) * (f + b + w) / (double)MO_MAX(vpp, 1);
}
