/* What the ranks of a launch order would get on a node: words, environment, binding. Pure; the
 * same bind_plan and env_compose as a real launch. For dry runs. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/dryrun.h"
#include "lib/model/nodeinfo.h"

/* Appends one dryrun_rank per local rank; secrets are shown as ***. Fits
 * daemon/core/rules/dryrun.h's dryrun_ranks_fn. */
int preview_ranks(const char *node, const struct nodeinfo *info, const struct launch *launch,
		  struct dryrun_rank **ranks, size_t *n_ranks, struct mo_error *err);
/* Only where they go and what they are bound to, which costs a tenth. */
int preview_binds(const char *node, const struct nodeinfo *info, const struct launch *launch,
		  struct dryrun_rank **ranks, size_t *n_ranks, struct mo_error *err);
