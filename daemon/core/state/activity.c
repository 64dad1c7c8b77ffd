/* See activity.h. */
#include "daemon/core/state/activity.h"

#include "daemon/core/state/robust.h"

#define FRESH_US (150 * 1000000LL) /* windows are of a minute */
#define SETTLE 2                   /* the first ones of an attempt load and compile */
#define USUAL_MIN 5
#define MOST 1e6 /* no value is more; !: NaN neither */

static double known(double value)
{
	return value >= 0 && value <= MOST ? value : MO_NONE_F;
}

static void values_of(const struct rank_activity *r, double *ret)
{
	double cpu = known(r->cpu_pct), delay = known(r->delay_pct);

	ret[ACT_DELAY] = delay == MO_NONE_F ? MO_NONE_F : 100 + delay;
	ret[ACT_WANTED] = cpu == MO_NONE_F || delay == MO_NONE_F ? MO_NONE_F : cpu + delay;
	ret[ACT_BUSY] = known(r->busy_pct);
	ret[ACT_MEM] = known(r->mem_pct);
	ret[ACT_POWER] = known(r->power_w);
}

static void learn(struct rank_acts *a, int kind, double value)
{
	a->usual[kind].n++;
	a->usual[kind].mean += (value - a->usual[kind].mean) / (double)a->usual[kind].n;
}

/* What was usual is learned of windows that leave the newest ones: until then it shows in the job's
 * pace whether they were. */
bool acts_take(struct rank_acts *a, const struct rank_activity *r, bool usual, int64_t now)
{
	double values[_ACTIVITY_KIND_N];

	if (r->window <= 0 || r->window == a->window)
		return false;
	values_of(r, values);
	a->n_usual = usual ? a->n_usual + 1 : 0;
	for (int k = 0; k < _ACTIVITY_KIND_N; k++) {
		double *place = &a->newest[k][a->n % ACT_WINDOWS];

		if (a->n_usual > ACT_WINDOWS && a->n >= SETTLE + ACT_WINDOWS && *place != MO_NONE_F)
			learn(a, k, *place);
		*place = values[k];
	}
	a->n++;
	a->window = r->window;
	a->at = now;
	return true;
}

static double median(const double *newest)
{
	double values[ACT_WINDOWS];

	for (size_t i = 0; i < ACT_WINDOWS; i++) {
		if (newest[i] == MO_NONE_F)
			return MO_NONE_F;
		values[i] = newest[i];
	}
	return robust_median(values, ACT_WINDOWS);
}

double act_now(const struct rank_acts *a, int kind, int64_t now)
{
	bool fresh = a->n >= SETTLE + ACT_WINDOWS && now - a->at <= FRESH_US;

	return fresh ? median(a->newest[kind]) : MO_NONE_F;
}

void acts_now(const struct rank_acts *a, int64_t now, double *ret)
{
	for (int k = 0; k < _ACTIVITY_KIND_N; k++)
		ret[k] = act_now(a, k, now);
}

void acts_usual(const struct rank_acts *a, double *ret)
{
	for (int k = 0; k < _ACTIVITY_KIND_N; k++)
		ret[k] = a->usual[k].n >= USUAL_MIN ? a->usual[k].mean : MO_NONE_F;
}
