/* See activity_judge.h. */
#include "daemon/core/rules/activity_judge.h"

#include "daemon/core/state/job_straggler.h"

#define SHARE 0.15 /* by so much of its peers' median one stands out */
#define GOOD 0.07  /* less is none any more */
/* of a reading that agrees: power grows less than work, and differs from GPU to GPU */
#define BUSY_AGREES 0.9
#define POWER_AGREES 1.08
#define MEM_LEAST 5.0 /* percent: readings are rounded */

struct scene {
	const struct rank_acted *r;
	size_t n;
	struct rank_value *values;
};

/* past: each against its own. */
static void fill(const struct scene *s, int kind, bool past)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct rank_acted *a = &s->r[i];
		double value = a->now[kind], usual = a->usual[kind];

		if (past)
			value = value == MO_NONE_F || usual == MO_NONE_F || usual <= 0
					? MO_NONE_F
					: value / usual;
		s->values[i] = (struct rank_value){ a->rank, a->stage, value };
	}
}

static struct standout odd(const struct scene *s, int kind, bool above, bool past)
{
	fill(s, kind, past);
	return standout_of(s->values, s->n, above, SHARE);
}

/* Of the median of its peers; 0: that is not known. */
static double times_of(const struct scene *s, int kind, bool past, int64_t rank)
{
	fill(s, kind, past);
	return standout_times(s->values, s->n, rank);
}

static double times(const struct scene *s, int kind, int64_t rank)
{
	return times_of(s, kind, false, rank);
}

/* The same rank stands out among its peers, and against its own past. */
static struct standout changed(const struct scene *s, int kind, bool above)
{
	struct standout now = odd(s, kind, above, false);

	if (now.rank != MO_NONE && odd(s, kind, above, true).rank != now.rank)
		now.rank = MO_NONE;
	return now;
}

static double value_of(const struct scene *s, int kind, int64_t rank)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->r[i].rank == rank)
			return s->r[i].now[kind];
	return MO_NONE_F;
}

/* ---- the signs ---- */

/* Its GPU is idle longer than those of its peers, and than it was, if that is known. */
static bool is_late(const struct scene *s, int64_t rank)
{
	double busy = times(s, ACT_BUSY, rank);

	return busy > 0 && busy <= BUSY_AGREES && times_of(s, ACT_BUSY, true, rank) <= BUSY_AGREES;
}

static bool processor(const struct scene *s, bool slow, struct activity_verdict *ret)
{
	static const int kinds[] = { ACT_DELAY, ACT_WANTED };

	*ret = (struct activity_verdict){ .sign = SIGN_PROCESSOR,
					  .kind = ACT_DELAY,
					  .odd = odd(s, ACT_DELAY, true, false),
					  .lost_pct = MO_NONE_F };
	if (ret->odd.rank != MO_NONE && is_late(s, ret->odd.rank)) {
		ret->lost_pct = value_of(s, ACT_BUSY, ret->odd.rank) *
				(1 / times(s, ACT_BUSY, ret->odd.rank) - 1);
		return true;
	}
	ret->alone = true;
	for (size_t i = 0; slow && i < ELEMENTSOF(kinds); i++) {
		ret->kind = kinds[i];
		ret->odd = changed(s, kinds[i], true);
		/* threads of its own beside the training; its GPU is fed all the same */
		if (ret->odd.rank != MO_NONE && times(s, ACT_BUSY, ret->odd.rank) == 0)
			return true;
	}
	return false;
}

static bool idle(const struct scene *s, bool slow, struct activity_verdict *ret)
{
	if (!slow)
		return false;
	*ret = (struct activity_verdict){ .sign = SIGN_IDLE,
					  .kind = ACT_BUSY,
					  .odd = changed(s, ACT_BUSY, false),
					  .alone = true,
					  .lost_pct = MO_NONE_F };
	return ret->odd.rank != MO_NONE;
}

static bool work(const struct scene *s, struct activity_verdict *ret)
{
	*ret = (struct activity_verdict){ .sign = SIGN_WORK,
					  .kind = ACT_MEM,
					  .odd = odd(s, ACT_MEM, true, false),
					  .alone = true };
	if (ret->odd.rank == MO_NONE || ret->odd.median < MEM_LEAST ||
	    times(s, ACT_POWER, ret->odd.rank) < POWER_AGREES)
		return false;
	ret->lost_pct = 100 * (1 - ret->odd.median / ret->odd.value);
	return true;
}

struct activity_verdict activity_judge(const struct rank_acted *r, size_t n, bool slow)
{
	_cleanup_(mo_freep) struct rank_value *values = mo_alloc_array(n + 1, sizeof(*values));
	struct scene s = { r, n, values };
	struct activity_verdict v;

	if (!processor(&s, slow, &v) && !idle(&s, slow, &v) && !work(&s, &v)) {
		v.odd.rank = MO_NONE;
		return v;
	}
	for (int k = 0; k < _ACTIVITY_KIND_N; k++) {
		double by = times(&s, k, v.odd.rank);

		v.median[k] = by > 0 ? value_of(&s, k, v.odd.rank) / by : MO_NONE_F;
	}
	return v;
}

struct activity_verdict activity_hint(const struct rank_acted *r, size_t n)
{
	static const struct {
		int kind;
		bool above;
	} kinds[] = { { ACT_DELAY, true }, { ACT_BUSY, false }, { ACT_MEM, true } };
	_cleanup_(mo_freep) struct rank_value *values = mo_alloc_array(n + 1, sizeof(*values));
	struct scene s = { r, n, values };
	struct activity_verdict v = { .odd.rank = MO_NONE };

	for (size_t i = 0; v.odd.rank == MO_NONE && i < ELEMENTSOF(kinds); i++) {
		v.kind = kinds[i].kind;
		v.odd = odd(&s, v.kind, kinds[i].above, false);
		v.median[v.kind] = v.odd.median;
		if (v.kind == ACT_MEM && v.odd.median < MEM_LEAST)
			v.odd.rank = MO_NONE;
	}
	return v;
}

bool activity_over(const struct rank_acted *r, size_t n, int64_t rank, int sign)
{
	_cleanup_(mo_freep) struct rank_value *values = mo_alloc_array(n + 1, sizeof(*values));
	struct scene s = { r, n, values };
	double by;

	if (sign == SIGN_IDLE)
		return times(&s, ACT_BUSY, rank) > 1 - GOOD;
	by = times(&s, sign == SIGN_PROCESSOR ? ACT_WANTED : ACT_MEM, rank);
	if (sign == SIGN_PROCESSOR)
		by = MO_MAX(by, times(&s, ACT_DELAY, rank));
	return by > 0 && by < 1 + GOOD;
}
