/* Dry run: where a recipe's ranks would go and what each would be given. Pure; callers: moed (POST /v1/jobs?dry_run=1) and moectl (submit --dry-run without a controller).
 * Binding and environment are the agent core's, which this room may not include: the caller hands in its preview_ranks (agent/core/preview.h). */
#pragma once
#include "daemon/core/state.h"
#include "lib/base/error.h"
#include "lib/model/dryrun.h"

/* Appends the ranks of one node. 0 or a negative errno with err. */
typedef int (*dryrun_ranks_fn)(const char *node, const struct nodeinfo *info, const struct launch *launch, struct dryrun_rank **ranks, size_t *n_ranks, struct mo_error *err);
/* Places spec on the nodes of s as they are now; when it does not fit there, on the same nodes with nothing running; when it fits there neither, on a free cluster of the
 * recipe's shape (dryrun_cluster). ret must be initialised; ret->plan is left to the caller. -E2BIG above MO_DRYRUN_RANKS_MAX ranks. */
int dryrun_make(const struct state *s, const struct submit *spec, dryrun_ranks_fn ranks, struct dryrun *ret, struct mo_error *err);
/* The same for a job that exists: under its own id and attempt. */
int dryrun_job(const struct state *s, const struct job *j, dryrun_ranks_fn ranks, struct dryrun *ret, struct mo_error *err);
/* A free cluster of the recipe's shape: nodes of up to 8 GPUs of cluster.gpu (default mi300x) over two NUMA nodes, as the platforms of these GPUs are built. s must be initialised. */
void dryrun_cluster(const struct recipe *r, struct state *s);
