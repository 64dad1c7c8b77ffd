/* Pipeline schedules as lists of work per rank, and their simulation: a node starts when its
 * rank is free and what it needs has arrived. Pure. Callers: the plan picture, tests that hold
 * the closed forms of pipeline.h against it. Invariant: every forward, backward and
 * weight-gradient of every micro-batch and virtual stage stands exactly once, on the rank that
 * owns the stage. */
#pragma once
#include "lib/plan/plan.h"

/* forward; backward; weight gradient where the schedule splits it off, otherwise B holds it */
enum sched_op { SCHED_F, SCHED_B, SCHED_W };
struct sched_node {
	enum sched_op op;
	/* chunk: of the rank; micro: of the step, for dualpipe of its direction */
	int32_t chunk, micro;
	/* so many nodes from here run as one: all wait for the needs of all, and are done
	 * together (DualPipe's F&B); 0 = alone */
	int32_t joined;
	double start, end;
};
struct sched_rank {
	struct sched_node *nodes;
	size_t n; /* in the order in which the rank works */
	/* seconds; most micro-batches whose activations the rank holds at once, in units of all
	 * its layers */
	double busy, in_flight;
};
struct sched {
	const char *kind;          /* as in parallelism.schedule */
	int64_t pp, chunks, micro; /* chunks of a rank */
	bool split;                /* W stands for itself */
	struct sched_rank *ranks;
	double step, bubble; /* seconds; idle share of all ranks, 0..1 */
};
/* Work of one virtual stage on one micro-batch, seconds. */
struct sched_cost {
	double f, b, w;
};

#define SCHED_NODES_MAX 4000000
/* Builds the lists; times are 0. -EINVAL with err: the schedule has no such shape, or it is too
 * large to be drawn. */
int sched_make(const char *kind, int64_t pp, int64_t vpp, int64_t micro, struct sched *ret,
	       struct mo_error *err);
/* Simulates. cost: one entry per virtual stage (sched_stages); transfer: seconds from one rank
 * to the next. -EDEADLK with err naming the rank that waits and for what. */
int sched_run(struct sched *s, const struct sched_cost *cost, double transfer,
	      struct mo_error *err);
void sched_done(struct sched *s);
/* Virtual stages, in the order in which a micro-batch meets them; dualpipe: pp, each held by two
 * ranks. */
int64_t sched_stages(const struct sched *s);
int64_t sched_stage(const struct sched *s, int64_t rank, int64_t chunk);
/* o: of the plan; NULL: none. The schedule of a plan of plan_make(), run with the times of its
 * stages. ret is to be freed by sched_done(), also after an error of the run. */
int plan_schedule(const struct recipe *r, const struct gpu_type *gpu, const struct plan *p,
		  const struct plan_options *o, int64_t micro_batches, struct sched *ret,
		  struct mo_error *err);
