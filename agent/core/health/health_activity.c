/* What a GPU does in all, so that whoever asks twice has its mean between: of power by the counter
 * of energy where there is one, else what probes read holds for the time since the one before. */
#include "agent/core/health/health_state.h"
#include "agent/core/health/reading.h"

/* What was read longer ago says nothing of the time between. */
#define HOLDS_US (60 * 1000000LL)

static void add(struct health_sum *s, double value, int64_t passed)
{
	if (value == MO_NONE_F)
		return;
	s->us += passed;
	s->sum += value * (double)passed;
}

void health_activity_take(struct object *o, const struct probe *p, int64_t now)
{
	struct activity *a = &o->activity;
	int64_t passed = a->read_at == MO_NONE ? 0 : now - a->read_at;
	double energy = reading_value(p, "energy_j"), power = reading_value(p, "power_w");

	if (passed > 0 && passed <= HOLDS_US) {
		if (energy != MO_NONE_F && a->energy_j != MO_NONE_F && energy > a->energy_j)
			power = (energy - a->energy_j) * 1e6 / (double)passed;
		add(&a->sums.busy_pct, reading_value(p, "busy_pct"), passed);
		add(&a->sums.mem_pct, reading_value(p, "mem_busy_pct"), passed);
		add(&a->sums.power_w, power, passed);
	}
	a->energy_j = energy;
	a->read_at = now;
}

const struct health_activity *health_activity(const struct health *h, const char *gpu)
{
	static const struct health_activity none;
	const struct object *o = health_object(h, PROBE_GPU, gpu);

	return o ? &o->activity.sums : &none;
}
