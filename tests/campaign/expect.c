/* What ETTR must come out at: a formula beside the simulation, so that one of both can be wrong.
 *
 * With s the step, w the stall of a save, K the steps between two saves (no fewer than a save
 * takes to be whole), W the time after the stall until it is: a cycle takes c = K s + w, and
 *   c_any  = init + load + K s / 2 + W        what any failure costs: the restart, and what was
 *                                             done since the last whole save, half a cycle in the
 *                                             mean (the iteration that was under way in it)
 *   c_node = max(10 s, lease, 3 s) + power    until a silent node is proved to be off; it counts
 *                                             once no iteration advances (progress.h)
 *   c_hang = suspect + confirm + grace - s/2 docs/failures.md, "Nothing moves": 3 and 5 (by GPUs
 *                                             that spin, cards or writing alone 8) times the 99th
 *                                             of the steps with their floors, 5 s in which ranks
 *                                             say where they stand; half a step is in c_any
 *                                             already
 *             until the 20th iteration of an attempt longer: expected_early_s()
 *   c_slow = init + load                      a drain follows a save and loses nothing
 * Failures come while the job trains, but as many as the time has, restarts included; so of the
 * time T what they cost is lost as a whole, and of the rest the stalls:
 *   ETTR = (1 - sum(n_k c_k) / T) / (1 + w / (K s))
 * (the first-order form of Daly's and of Kokolis et al.: E[ETTR] = (1 - n r (u0 + dt/2)) / (1 +
 * w/dt), with detection in it). What the controller itself takes is not in it: it is what a run
 * is held against. */
#include <math.h>

#include "tests/campaign/campaign.h"

#define GRACE_S 5.0 /* HANG_GRACE_US */

double expected_early_s(int fault, bool first, bool again)
{
	double limit = first ? 1800 : 900, start = INIT_S + LOAD_S;

	/* spinning, it may compile: four times as long */
	if (!again)
		return limit + (fault == FAULT_SPINS ? 8 : 2) * limit;
	double suspect = fmin(limit, fmax(3 * start, limit / 3));

	return suspect + (fault == FAULT_SPINS ? fmax(8 * start, 2 * limit) : 2 * suspect);
}

double expected_ettr(const struct world *of)
{
	const struct options *o = &of->o;
	double steps = fmax((double)o->every, ceil(o->write_s / o->step_s));
	double any = INIT_S + LOAD_S + steps * o->step_s / 2 + o->write_s;
	double gap = o->step_s + o->stall_s;
	double both = fmax(5 * gap, 30), suspect = fmax(3 * gap, 10),
	       spin = fmax(8 * gap, o->gpus  ? (o->net ? 60 : 300)
				    : o->net ? 600
					     : 900);
	double hang = suspect + GRACE_S - o->step_s / 2;
	double costs[_FAULT_N] = {
		[FAULT_RANK] = any,
		[FAULT_NODE] = any + fmax(fmax(10, o->lease_s), 3 * o->step_s) - o->step_s / 2 +
			       o->power_s,
		[FAULT_STOPPED] = any + hang + both,
		[FAULT_SPINS] = any + hang + spin,
		[FAULT_SLOW] = INIT_S + LOAD_S,
	};
	double lost = INIT_S, all = (double)(of->now - of->began) / 1e6;

	for (int i = 0; i < _FAULT_N; i++)
		lost += costs[i] * (double)(of->faults[i] - of->early[i]) +
			any * (double)of->early[i];
	lost += of->early_s;
	return (1 - lost / all) / (1 + o->stall_s / (steps * o->step_s));
}
