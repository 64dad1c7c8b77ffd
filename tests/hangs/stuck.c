/* True hangs: each kind in each phase. */
#include "tests/hangs/hangs.h"

const char *const phase_of_names[_PHASE_OF_N] = {
	"", "init", "load", "first steps", "steps", "save", "evaluation", "end",
};

/* odd: one rank does that, the others the other; else all do. behind: and it is an iteration
 * behind, with an engine whose ranks all print. unnamed: without GPUs nobody can tell it. */
static const struct {
	const char *name;
	int act, others, gpu, gpus;
	bool odd, behind, unnamed;
} kinds[] = {
	{ "a rank sleeps, others spin", ACT_SLEEP, ACT_COMPUTE, GPU_RESTS, GPU_SPINS, .odd = true },
	{ "a rank is stopped", ACT_STOPPED, ACT_COMPUTE, GPU_RESTS, GPU_SPINS, .odd = true },
	{ "a rank is stopped, others sleep", ACT_STOPPED, ACT_SLEEP, GPU_RESTS, GPU_SPINS,
	  .odd = true },
	{ "a rank waits for the disk", ACT_DISK, ACT_COMPUTE, GPU_RESTS, GPU_SPINS, .odd = true },
	{ "a rank is an iteration behind, all spin", ACT_COMPUTE, ACT_COMPUTE, GPU_SPINS, GPU_SPINS,
	  .odd = true, .behind = true },
	{ "a rank loops on the host, others spin", ACT_COMPUTE, ACT_COMPUTE, GPU_RESTS, GPU_SPINS,
	  .odd = true, .unnamed = true },
	{ "all spin", ACT_COMPUTE, ACT_COMPUTE, GPU_SPINS, GPU_SPINS, .odd = false },
	{ "all spin, asleep", ACT_SLEEP, ACT_SLEEP, GPU_SPINS, GPU_SPINS, .odd = false },
	{ "all sleep", ACT_SLEEP, ACT_SLEEP, GPU_RESTS, GPU_RESTS, .odd = false },
};

size_t stuck_kinds(void)
{
	return ELEMENTSOF(kinds);
}

const char *stuck_name(size_t kind)
{
	return kinds[kind].name;
}

bool stuck_make(size_t kind, int phase, double step_s, uint64_t *rng, struct scenario *ret)
{
	bool behind = kinds[kind].behind;

	if (behind && phase != IN_STEPS && phase != IN_FIRST)
		return false;
	/* in others nothing is known of GPUs, or nothing that says who is odd */
	if (kinds[kind].unnamed && phase != IN_STEPS)
		return false;
	*ret = (struct scenario){
		.name = kinds[kind].name,
		.engine = { behind ? "torchtitan" : "megatron-lm", .last = !behind, .all = behind,
			    .phases = true, .interval = 1 },
		.step_s = step_s,
		.steps = 240,
		.init_s = 20,
		.load_s = 10,
		.load_act = ACT_READ,
		.first_s = 30,
		.save_every = 60,
		.save_s = 10,
		.save_act = ACT_WRITE,
		.eval_every = 90,
		.eval_s = 60,
		.last_save_s = phase == IN_END ? 0 : 10,
		.stuck_in = phase,
		.stuck_act = kinds[kind].act,
		.stuck_others = kinds[kind].others,
		.stuck_gpu = kinds[kind].gpu,
		.stuck_gpus = kinds[kind].gpus,
		.unnamed = kinds[kind].unnamed,
		/* not the one that prints the iterations of the job */
		.stuck_odd = behind            ? 1 + (int)(draw(rng) % (RANKS - 1))
			     : kinds[kind].odd ? (int)(draw(rng) % RANKS)
					       : -1,
		.behind = behind,
	};
	return true;
}
