/* Hangs and what looks like them: the production core of the controller in virtual time, and jobs
 * whose agents report what an engine prints and what /proc shows of its ranks. Written from the
 * documentation of recovery.hang alone. Files: recorded (times of real logs), bed (controller,
 * agents, one job), engine (what a job does, and when), healthy and stuck (scenarios), main. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/core/agent/motion.h"
#include "agent/core/health/gpu_work.h"
#include "daemon/core/core.h"

#define S 1000000LL
#define MIN (60 * S)
#define BEDS 2 /* nodes */
#define LOCAL 2
#define RANKS (BEDS * LOCAL)

/* What a rank does, as /proc shows it. */
enum act {
	ACT_COMPUTE,      /* or it waits for a peer or the GPU, spinning */
	ACT_SLEEP,        /* it waits, and uses no processor */
	ACT_DISK,         /* it waits in the kernel for a file system */
	ACT_WORKERS_DISK, /* it sleeps; a process below it waits in the kernel */
	ACT_STOPPED,
	ACT_WRITE, /* files */
	ACT_READ,
	ACT_TALK, /* lines that tell nothing */
	_ACT_N
};
/* What its GPU does, as its sensors show it. */
enum gpu {
	GPU_WORKS,
	GPU_SPINS, /* a kernel waits for a peer */
	GPU_RESTS,
	GPU_BURNS, /* a kernel computes without touching memory */
};
/* A stretch of time, and what is said at its end. All ranks do `others` but `odd`. */
enum said {
	SAID_NOTHING,
	SAID_INIT,
	SAID_LOAD,
	SAID_ITERATION,
	SAID_SAVING,
	SAID_SAVED,
	SAID_EVAL,
	SAID_FOR_EVER, /* it never ends */
	SAID_DEATH,    /* rank 0 exits 1 */
	SAID_DONE,     /* all exit 0 */
};
struct stretch {
	double seconds;
	int act, others, odd; /* odd -1: all do `others` */
	int said;
	int gpu, gpus; /* enum gpu: of the odd one, of the others */
};
/* What an engine lets be seen. */
struct prints {
	const char *name;
	bool last;    /* the last rank prints the iterations, else the first */
	bool all;     /* every rank does */
	bool phases;  /* it says when it initialises, loads, evaluates */
	bool sleeps;  /* ranks that wait for the GPU use no processor */
	int interval; /* every so many iterations */
};
struct scenario {
	const char *name;
	struct prints engine;
	double step_s, outlier_p, slower; /* slower: times, over the run; */
	double jump;                      /* times, from the middle on */
	int64_t steps;
	const double *replay; /* these steps, as they were */
	size_t n_replay;
	int batch; /* lines that come at once */
	double init_s, load_s, first_s;
	int init_act, load_act, first_act;
	bool one_starts; /* rank 0 does that, the others sleep */
	int64_t save_every, eval_every, pause_every;
	double save_s, eval_s, pause_s, last_save_s;
	int save_act, eval_act, pause_act;
	int pause_gpu, pause_gpus; /* enum gpu: of the one, or all; of the others */
	int eval_gpu;
	bool pause_one, save_unsaid, save_aside, eval_unsaid;
	int64_t restart_at, away_at;
	bool cuts;
	bool cards;   /* its agents read what cards move */
	bool sockets; /* it sends by none of them */
	bool gpus;    /* its agents read what GPUs do */
	bool frozen;  /* or what they did once */
	/* a true hang */
	int stuck_in; /* enum phase_of; 0 none */
	int stuck_act, stuck_others, stuck_odd;
	int stuck_gpu, stuck_gpus;
	bool unnamed; /* unless GPUs are read, nobody can tell `odd` */
	bool behind;  /* `odd` is an iteration behind */
};
enum phase_of {
	NOT_STUCK,
	IN_INIT,
	IN_LOAD,
	IN_FIRST,
	IN_STEPS,
	IN_SAVE,
	IN_EVAL,
	IN_END,
	_PHASE_OF_N
};
struct verdicts {
	int64_t steps, suspected, confirmed, cleared;
	int64_t hung_at, detected_at, rank; /* of a true hang; 0 none */
	bool acts, completed;
	char why[400];
};

/* random.c is the simulator's: splitmix64 */
uint64_t draw(uint64_t *rng);
double draw_real(uint64_t *rng, double low, double high);
double draw_wide(uint64_t *rng, double low, double high); /* as many of each magnitude */

/* One run of one job; the same for the same seed. */
void bed_run(const struct scenario *s, uint64_t seed, bool trace, struct verdicts *ret);

/* engine.c: the stretches of an attempt, one after the other. */
struct course {
	const struct scenario *scenario;
	uint64_t *rng;
	int stage;
	int64_t iteration, resumed, attempt;
	bool saved, evaluated, paused, hung;
};
void course_begin(struct course *c, const struct scenario *s, uint64_t *rng, int64_t attempt,
		  int64_t resume);
struct stretch course_next(struct course *c);

/* Draws one of the healthy kinds; or all hangs, one after the other. */
size_t healthy_kinds(void);
const char *healthy_name(size_t kind);
void healthy_draw(size_t kind, uint64_t *rng, struct scenario *ret);
size_t stuck_kinds(void);
/* False: this kind does not happen in this phase. */
bool stuck_make(size_t kind, int phase, double step_s, uint64_t *rng, struct scenario *ret);
const char *stuck_name(size_t kind);
extern const char *const phase_of_names[_PHASE_OF_N];
