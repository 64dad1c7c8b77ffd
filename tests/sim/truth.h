/* Jobs as they are in truth: attempts, checkpoints, what the controller has acknowledged. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct proc;
/* own_us: without waiting for its peers. slow: it was, in some step of the attempt. */
struct pace_of_rank {
	int64_t own_us;
	bool slow, slow_now;
};
/* What a job's program does beside its steps (engine.c). */
enum act { ACT_COMPUTE, ACT_FILES, ACT_SLEEP, ACT_DISK };
enum saves { SAVES_SHORT, SAVES_LONG, SAVES_UNSAID, SAVES_ASIDE };
struct engine_times {
	bool starts_long, compiles_long, one_starts, steps_asleep, eval_unsaid;
	int long_act, saves; /* enum act of what takes long; enum saves */
	int64_t eval_every;  /* steps, 0 never */
};
/* What a job does in truth, per attempt. */
struct attempt {
	int64_t job, number, world, iteration, steps, every, step_us, resume, length;
	struct proc **ranks;
	const struct engine_times *engine;
	int act; /* enum act; one: of rank 0, for which the others wait */
	bool one, compiled, paused;
	int64_t evaluated;          /* after that step */
	struct pace_of_rank *paces; /* of the step at hand */
	int64_t took_us;            /* by the slowest of them */
	/* broken_at: first death that is no orderly end, 0 none */
	int64_t n_started, n_alive, broken_at;
	/* cut: samples of it went with a lost controller */
	bool training, ending, lossy, cut;
	int64_t in_hands;     /* samples that die with its supervisor */
	int64_t stands_until; /* its files grow */
	int64_t saving;       /* iteration being saved, 0 none */
	/* its loss is no number from that iteration on, 0 never; it is odd_loss in these */
	int64_t broken_from, odd_from, odd_until;
	double odd_loss;
};
/* A checkpoint in the shared file system. given_up: a user went back behind it since; stamp: what
 * its manifest would say; altered: its files changed after the controller had their manifest, whose
 * stamp `was`. */
struct file {
	int64_t iteration;
	bool complete, torn, given_up, altered;
	bool rotten; /* whoever loads it dies */
	bool named;  /* and came back to it by name since: it may be taken, at once or later */
	int64_t changed_at, altered_at, stamp, was;
	/* saved by that attempt with broken weights, or in a spell of bad losses; told: number of
	 * the restore since which the controller knows that they are broken, MO_NONE it does not */
	int64_t by, told;
	bool broken, odd;
};
struct truth { /* of one job id */
	int64_t id;
	int64_t stopping_since;     /* as the controller has it, 0 not */
	bool stored;                /* by some controller, maybe one that is lost */
	int64_t submitted, started; /* in truth */
	bool unheard; /* the attempt before the last placed one was not heard to its end */
	/* the highest attempt that a lost controller had decided to end */
	int64_t decided;
	int64_t harmed; /* the highest attempt of which something broke */
	struct attempt *now;
	/* processes of any attempt, without those that cannot be killed */
	int64_t live;
	struct file *files;
	size_t n_files;
	bool acked, cancel_acked, pause_acked;
	int64_t attempt_at_cancel;
	int64_t step_us, length;
	struct engine_times engine;
	bool from_asked;
	int64_t from; /* restart --from FROM, until an attempt follows */
	/* its newest straggler was named then; nodes that it left for one since that restore */
	int64_t named_at, n_left, left_restores;
	int64_t breaks_at; /* data there breaks the weights, 0 none */
	int64_t failed;    /* the newest attempt that the controller called so */
	/* its damaged checkpoints stay so: it may wait for a person at the end */
	bool unrepaired;
};
