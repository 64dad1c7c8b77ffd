/* What a program does beside its steps, and how long: it builds its data set, loads, compiles,
 * saves, evaluates. Times are those of recorded logs (tests/hangs/recorded.c), and of the slowest
 * that anybody reported, a tenth of each, as the least times of a hang are here (sim_core()). What
 * moves meanwhile is what its agents read when they are asked. */
#include "tests/sim/sim.h"

#include <math.h>

#include "agent/core/agent/motion.h"
#include "tests/hangs/recorded.h"

#define TENTH (S / 10) /* of a second in a log */

static double real(struct sim *s, double low, double high)
{
	return low + (high - low) * (double)(sim_random(s) >> 11) / 9007199254740992.0;
}

static double wide(struct sim *s, double low, double high)
{
	return exp(real(s, log(low), log(high)));
}

static int64_t tenth(double seconds)
{
	return (int64_t)(seconds * (double)TENTH);
}

static double one_of(struct sim *s, const struct recorded *r)
{
	return r->seconds[sim_random(s) % r->n];
}

void engine_draw(struct sim *s, struct engine_times *e)
{
	static const int acts[] = { ACT_COMPUTE, ACT_FILES, ACT_SLEEP, ACT_DISK };

	*e = (struct engine_times){
		.starts_long = sim_chance(s, 0.03),
		.compiles_long = sim_chance(s, 0.05),
		.one_starts = sim_chance(s, 0.2),
		.steps_asleep = sim_chance(s, 0.2),
		.long_act = acts[sim_random(s) % ELEMENTSOF(acts)],
		.saves = sim_chance(s, 0.1)   ? SAVES_LONG
			 : sim_chance(s, 0.1) ? SAVES_UNSAID
			 : sim_chance(s, 0.3) ? SAVES_ASIDE
					      : SAVES_SHORT,
		.eval_every = sim_chance(s, 0.25) ? sim_between(s, 10, 40) : 0,
		.eval_unsaid = sim_chance(s, 0.3),
	};
}

/* The times of one start, load, compilation, save, evaluation; what it does meanwhile. */
int64_t engine_start(struct sim *s, struct attempt *a)
{
	const struct engine_times *e = a->engine;

	a->act = e->starts_long ? e->long_act : ACT_COMPUTE;
	s->fault_counts[F_START_LONG] += e->starts_long;
	return tenth(e->starts_long ? recorded_starts.seconds[1] * real(s, 1, 1.5)
				    : recorded_starts.seconds[0] * real(s, 0.5, 3));
}

int64_t engine_load(struct sim *s, struct attempt *a)
{
	const struct engine_times *e = a->engine;

	a->act = e->starts_long && e->long_act != ACT_COMPUTE ? e->long_act : ACT_FILES;
	return tenth(e->starts_long ? recorded_starts.seconds[2] : real(s, 1, 60));
}

int64_t engine_compile(struct sim *s, struct attempt *a)
{
	const struct engine_times *e = a->engine;

	a->act = ACT_COMPUTE;
	s->fault_counts[F_COMPILE_LONG] += e->compiles_long;
	return tenth(e->compiles_long ? real(s, 600, 1200)
				      : one_of(s, &recorded_firsts) * real(s, 0.5, 2));
}

/* A run is minutes long: one of these in an attempt. */
static int64_t pause_of(struct sim *s, struct attempt *a, double low, double high)
{
	double seconds = wide(s, low, a->paused ? MO_MIN(high, 60) : high);

	a->paused |= seconds > 60;
	return tenth(seconds);
}

int64_t engine_save(struct sim *s, struct attempt *a)
{
	const struct engine_times *e = a->engine;
	bool is_long = e->saves == SAVES_LONG && !a->paused && sim_chance(s, 0.3);

	s->fault_counts[F_SAVE_LONG] += is_long;
	s->fault_counts[F_SAVE_UNSAID] += e->saves == SAVES_UNSAID;
	s->fault_counts[F_SAVE_ASIDE] += e->saves == SAVES_ASIDE;
	if (e->saves != SAVES_ASIDE)
		a->act = is_long && e->long_act != ACT_COMPUTE ? e->long_act : ACT_FILES;
	if (is_long)
		return pause_of(s, a, 1800, 1800);
	return e->saves == SAVES_UNSAID ? pause_of(s, a, 10, 600)
					: tenth(one_of(s, &recorded_saves) * wide(s, 1, 10));
}

int64_t engine_evaluation(struct sim *s, struct attempt *a)
{
	const struct engine_times *e = a->engine;

	s->fault_counts[e->eval_unsaid ? F_EVALUATION_UNSAID : F_EVALUATION]++;
	a->act = e->eval_unsaid || e->long_act != ACT_SLEEP ? ACT_COMPUTE : ACT_SLEEP;
	return pause_of(s, a, 10, e->eval_unsaid ? 480 : 3600);
}

/* How many times the usual a step takes. */
double engine_step(struct sim *s, bool may_stand_out)
{
	return may_stand_out && sim_chance(s, 0.002)
		       ? recorded_outliers[sim_random(s) % n_recorded_outliers]
		       : recorded_body[sim_random(s) % n_recorded_body];
}

/* In truth: each iteration prints, who writes writes; who waits for a peer spins. */
void engine_motion(const struct sim *s, const struct attempt *a, struct motion_reading *r)
{
	const struct proc *p = r->rank < a->world ? a->ranks[r->rank] : NULL;
	bool runs = train_runs(a), stands = runs && a->stands_until > s->now;
	int act = !runs ? ACT_COMPUTE : a->one && r->rank > 0 ? ACT_SLEEP : a->act;

	if (!p || !p->alive)
		return;
	r->log_bytes = a->iteration * 100;
	r->io_bytes = stands || act == ACT_FILES ? s->now * 10 : 0;
	r->cpu_us = p->frozen                                          ? 0
		    : !stands && (act == ACT_SLEEP || act == ACT_DISK) ? s->now / 200
								       : s->now;
	r->state = p->stuck || (act == ACT_DISK && !p->frozen) ? PROCESS_WAITS
		   : p->frozen                                 ? PROCESS_STOPPED
							       : PROCESS_RUNS;
}
