/* Dry run: where a recipe's ranks would go and what each would be given. Pure; callers: moed
 * (POST /v1/jobs?dry_run=1) and moectl (submit --dry-run without a controller). Binding and
 * environment are the agent core's, which this room may not include: the caller hands in its
 * preview_ranks (agent/core/bind/preview.h). */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/base/error.h"
#include "lib/model/dryrun.h"

/* Appends the ranks of one node. 0 or a negative errno with err. */
typedef int (*dryrun_ranks_fn)(const char *node, const struct nodeinfo *info,
			       const struct launch *launch, struct dryrun_rank **ranks,
			       size_t *n_ranks, struct mo_error *err);
struct dryrun_walk {
	dryrun_ranks_fn ranks;
	/* Gets the ranks of one node after the other, in their order, and what the node is,
	 * which may be an example; both are freed behind it. 0 goes on. */
	int (*node)(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
		    size_t n, struct mo_error *err);
	void *arg;
	/* only nodes that have a rank in from..to-1; to MO_NONE: to the last */
	int64_t from, to;
	/* no limit of ranks: the caller has the time and memory of the shape */
	bool large;
};
/* What the ranks were placed on, and how documents name it (placed_on). */
enum dryrun_placed { DRYRUN_NOW, DRYRUN_IDLE, DRYRUN_EXAMPLE, _DRYRUN_N };
extern const char *const dryrun_placed_names[_DRYRUN_N];
/* Places spec on the nodes of s as they are now; when it does not fit there, on the same nodes
 * with nothing running; when it fits there neither, on an example (dryrun_cluster). Returns
 * which of them it was (enum dryrun_placed), or a negative errno with err: -E2BIG above
 * MO_DRYRUN_RANKS_MAX ranks, however few are walked over: the shape alone is of that size. */
int dryrun_walk(const struct state *s, const struct submit *spec, const struct dryrun_walk *walk,
		struct mo_error *err);
/* The same for a job that exists: under its own id and attempt. */
int dryrun_walk_job(const struct state *s, const struct job *j, const struct dryrun_walk *walk,
		    struct mo_error *err);
/* An example, for what is no fact of any machine: a free cluster of the recipe's shape, nodes of
 * up to 8 GPUs of cluster.gpu (default mi300x) over two NUMA nodes, as the platforms of these
 * GPUs are built. s must be initialised. */
void dryrun_cluster(const struct recipe *r, struct state *s);
