/* What healthy jobs do, and what was seen to look like a hang. Each kind is drawn anew for each
 * run: engine, step, how often, how long. */
#include "tests/hangs/hangs.h"
#include "tests/hangs/recorded.h"

#include <string.h>

static const struct prints engines[] = {
	{ "megatron-lm", .last = true, .phases = true, .interval = 1 },
	{ "megatron-lm", .last = true, .phases = true, .interval = 10 },
	{ "torchtitan", .all = true, .phases = true, .interval = 1 },
	{ "torchtitan", .all = true, .phases = true, .interval = 10 },
	{ "maxtext", .all = true, .phases = true, .sleeps = true, .interval = 1 },
	{ "deepspeed", .interval = 10 },
	{ "torch", .interval = 1 },
};

enum kind {
	K_PLAIN,
	K_TAILS,
	K_RARE_OUTLIERS,
	K_COMPILES,
	K_ONE_COMPILES,
	K_LONG_SAVES,
	K_SAVES_ON_A_SLOW_DISK,
	K_UNANNOUNCED_SAVES,
	K_ASYNC_SAVES,
	K_EVALUATIONS,
	K_EVALUATIONS_THAT_SLEEP,
	K_EVALUATIONS_THAT_PRINT,
	K_SHORT_SILENT_EVALUATIONS,
	K_SLOW_STARTS,
	K_SLOW_LOADS,
	K_ASLEEP_STARTS,
	K_SLOWER,
	K_JUMP,
	K_GC,
	K_BATCHES,
	K_INTERVAL_100,
	K_NFS_STALL,
	K_NFS_STALL_OF_WORKERS,
	K_REFILL,
	K_RECOMPILES,
	K_ONE_RECOMPILES,
	K_ONE_EVALUATES,
	K_ONE_WAITS_FOR_DATA,
	K_LITTLE_MEMORY,
	K_FABRIC_STANDS,
	K_SOCKETS_STAND,
	K_FROZEN_SENSORS,
	K_RESTARTS,
	K_CUTS,
	K_AWAY,
	K_LAST_SAVE,
	K_REPLAY,
	_K_N
};
static const char *const names[_K_N] = {
	"steps as recorded",
	"5 % outliers",
	"0.05 % outliers",
	"20 min of silent compiling",
	"rank 0 compiles for 20 min, others sleep",
	"saves of 30 min",
	"saves of 30 min, waiting for the disk",
	"saves of 10 min that nobody announced",
	"saves beside the steps",
	"silent evaluations of an hour",
	"the same, processors idle",
	"evaluations that only print",
	"silent evaluations of 8 min, not announced",
	"starts of 13 min and more",
	"loads of 24 min and more",
	"the same, processors idle",
	"gradually five times slower",
	"2.5 times slower from the middle on",
	"garbage collection of 20 s on a rank",
	"lines that come 27 at once",
	"a line every 100 iterations",
	"NFS stands for a minute",
	"NFS stands for a minute under the loaders",
	"loaders refill for 90 s",
	"8 min of compiling anew, silent",
	"the same on a rank, others spin",
	"a rank evaluates for 8 min, others spin",
	"a rank waits 100 s for data, others spin",
	"kernels of 8 min that touch no memory",
	"the fabric stands for 45 s, all spin",
	"sockets stand for 4 min, all spin",
	"GPUs whose sensors always say that they spin",
	"a rank dies",
	"agents cut off for 2 to 45 s",
	"controller away for 10 min",
	"a last save of 30 min",
	"recorded steps one by one",
};

size_t healthy_kinds(void)
{
	return _K_N;
}

const char *healthy_name(size_t kind)
{
	return names[kind];
}

static void saves(struct scenario *s, int64_t every, double seconds, int act)
{
	s->save_every = every;
	s->save_s = seconds;
	s->save_act = act;
}

static void evaluates(struct scenario *s, double seconds, int act, bool unsaid)
{
	s->eval_every = s->steps / 3;
	s->eval_s = seconds;
	s->eval_act = act;
	s->eval_unsaid = unsaid;
}

static void pauses(struct scenario *s, uint64_t *rng, double seconds, int act, bool one, int gpu)
{
	s->pause_every = s->steps / (int64_t)draw_real(rng, 2, 9);
	s->pause_s = seconds;
	s->pause_act = act;
	s->pause_one = one;
	s->pause_gpu = gpu;
	s->pause_gpus = GPU_SPINS;
}

static void starts(struct scenario *s, uint64_t *rng)
{
	s->init_s = recorded_starts.seconds[0] * draw_real(rng, 0.5, 3);
	s->load_s = draw_real(rng, 1, 60);
	s->load_act = ACT_READ;
	s->first_s = recorded_firsts.seconds[draw(rng) % recorded_firsts.n];
}

static void particular(size_t kind, uint64_t *rng, struct scenario *s)
{
	bool coin = draw(rng) % 2;

	switch (kind) {
	case K_TAILS: s->outlier_p = 0.05; break;
	case K_RARE_OUTLIERS: s->outlier_p = 0.0005; break;
	case K_COMPILES: s->first_s = draw_real(rng, 600, 1200); break;
	case K_ONE_COMPILES:
		s->first_s = draw_real(rng, 600, 1200);
		s->one_starts = true;
		break;
	case K_LONG_SAVES: saves(s, s->steps / 3, 1800, coin ? ACT_WRITE : ACT_SLEEP); break;
	case K_SAVES_ON_A_SLOW_DISK: saves(s, s->steps / 3, 1800, ACT_DISK); break;
	case K_UNANNOUNCED_SAVES:
		saves(s, s->steps / 3, 600, ACT_WRITE);
		s->save_unsaid = true;
		break;
	case K_ASYNC_SAVES: s->save_aside = true; break;
	case K_EVALUATIONS: evaluates(s, 3600, ACT_COMPUTE, false); break;
	case K_EVALUATIONS_THAT_SLEEP: evaluates(s, 3600, ACT_SLEEP, false); break;
	case K_EVALUATIONS_THAT_PRINT: evaluates(s, 3600, ACT_TALK, true); break;
	case K_SHORT_SILENT_EVALUATIONS: evaluates(s, 480, ACT_COMPUTE, true); break;
	case K_SLOW_STARTS:
		s->init_s = recorded_starts.seconds[1] * draw_real(rng, 1, 1.5);
		s->one_starts = coin;
		break;
	case K_SLOW_LOADS:
		s->load_s = recorded_starts.seconds[2] * draw_real(rng, 1, 1.5);
		s->load_act = coin ? ACT_READ : ACT_DISK;
		break;
	case K_ASLEEP_STARTS:
		s->init_s = recorded_starts.seconds[1];
		s->load_s = recorded_starts.seconds[2];
		s->init_act = s->load_act = ACT_SLEEP;
		break;
	case K_SLOWER: s->slower = 5; break;
	case K_JUMP: s->jump = 2.5; break;
	case K_GC: pauses(s, rng, 20, ACT_COMPUTE, true, GPU_RESTS); break;
	case K_BATCHES:
		s->batch = 27;
		s->step_s = draw_wide(rng, 0.2, 30);
		break;
	case K_INTERVAL_100:
		s->engine.interval = 100;
		s->step_s = draw_wide(rng, 0.2, 8);
		s->steps = 2000;
		break;
	case K_NFS_STALL: pauses(s, rng, 60, ACT_DISK, coin, GPU_RESTS); break;
	case K_NFS_STALL_OF_WORKERS: pauses(s, rng, 60, ACT_WORKERS_DISK, coin, GPU_RESTS); break;
	case K_REFILL: pauses(s, rng, 90, coin ? ACT_READ : ACT_COMPUTE, false, GPU_RESTS); break;
	case K_RECOMPILES: pauses(s, rng, 480, ACT_COMPUTE, false, GPU_RESTS); break;
	case K_ONE_RECOMPILES: pauses(s, rng, 480, ACT_COMPUTE, true, GPU_RESTS); break;
	case K_ONE_EVALUATES:
		pauses(s, rng, 480, s->engine.sleeps ? ACT_SLEEP : ACT_COMPUTE, true, GPU_WORKS);
		break;
	case K_ONE_WAITS_FOR_DATA: pauses(s, rng, 100, ACT_SLEEP, true, GPU_RESTS); break;
	case K_LITTLE_MEMORY: pauses(s, rng, 480, ACT_COMPUTE, coin, GPU_BURNS); break;
	case K_FABRIC_STANDS: pauses(s, rng, 45, ACT_COMPUTE, false, GPU_SPINS); break;
	case K_SOCKETS_STAND:
		s->sockets = true;
		pauses(s, rng, 240, ACT_COMPUTE, false, GPU_SPINS);
		break;
	case K_FROZEN_SENSORS:
		s->frozen = true;
		pauses(s, rng, 480, ACT_COMPUTE, false, GPU_SPINS);
		break;
	case K_RESTARTS: s->restart_at = s->steps / 2; break;
	case K_CUTS: s->cuts = true; break;
	case K_AWAY: s->away_at = s->steps / 2; break;
	case K_LAST_SAVE: s->last_save_s = 1800; break;
	case K_REPLAY: {
		const struct recorded *r = &recorded_steps[draw(rng) % n_recorded_steps];

		s->replay = r->seconds;
		s->n_replay = r->n;
		break;
	}
	default: break;
	}
}

void healthy_draw(size_t kind, uint64_t *rng, struct scenario *ret)
{
	*ret = (struct scenario){ .name = names[kind],
				  .engine = engines[draw(rng) % ELEMENTSOF(engines)],
				  .step_s = draw_wide(rng, 0.2, 120),
				  .outlier_p = 0.002 };
	ret->steps = (int64_t)draw_real(rng, 100, 1200);
	if (ret->step_s < 4)
		ret->steps *= 3;
	ret->steps -= ret->steps % 10; /* the last one is printed */
	starts(ret, rng);
	saves(ret, ret->steps / 4,
	      recorded_saves.seconds[draw(rng) % recorded_saves.n] * draw_wide(rng, 1, 10),
	      ACT_WRITE);
	particular(kind, rng, ret);
}
