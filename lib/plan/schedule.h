/* Pipeline schedules as lists of work per rank. Pure. Callers: the plan picture, tests. Invariant:
 * every forward, backward and weight-gradient of every micro-batch and virtual stage stands exactly
 * once, on the rank that owns the stage. */
#pragma once
#include "lib/base/error.h"

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

#define SCHED_NODES_MAX 4000000
/* Builds the lists; times are 0. -EINVAL with err: the schedule has no such shape, or it is too
 * large to be drawn. */
int sched_make(const char *kind, int64_t pp, int64_t vpp, int64_t micro, struct sched *ret,
	       struct mo_error *err);
void sched_done(struct sched *s);
/* Virtual stages, in the order in which a micro-batch meets them; dualpipe: pp, each held by two
 * ranks. */
int64_t sched_stages(const struct sched *s);
int64_t sched_stage(const struct sched *s, int64_t rank, int64_t chunk);
/* For what builds the lists: one more piece of work at the end of a rank's. */
void sched_add(struct sched_rank *r, enum sched_op op, int64_t chunk, int64_t micro);
/* the first and the last chunk lie on rank 0 */
bool sched_is_v(const char *kind);
