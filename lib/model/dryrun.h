/* The dry-run document as a value: what a submit would start, rank by rank, without starting
 * anything. Made by daemon/core/rules/dryrun.h, encoded by lib/wire/dryrun.h. */
#pragma once
#include "lib/model/launch.h"

/* ranks in one document: each carries its whole environment */
#define MO_DRYRUN_RANKS_MAX 8192
#define MO_DRYRUN_BYTES_MAX (64 << 20) /* of what moed answers */

struct dryrun_rank {
	int64_t rank;
	char *node;
	int64_t local_rank;
	char **argv;
	size_t n_argv;
	struct env_item *env;
	size_t n_env; /* value NULL = read from a file on the node */
	char *cpus;
	int64_t numa_node, gpu;
	char *nic;
};
extern const struct mo_desc dryrun_rank_desc;
