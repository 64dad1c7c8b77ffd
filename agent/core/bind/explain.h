/* Why a rank is bound as it is: the sentences of `moectl explain bind`. Pure. Called by moed
 * with what the ranks' notes say, or with a preview. */
#pragma once
#include "lib/model/job.h"
#include "lib/model/nodeinfo.h"

struct bind_view {
	int64_t rank;
	char *node;
	int64_t local_rank;
	int64_t gpu;
	char *gpu_model, *bdf;
	int64_t numa_node;
	char *cpus;
	int64_t cores; /* whole cores of cpus; MO_NONE not bound */
	char **l3;
	size_t n_l3;  /* L3 groups that the cpus touch */
	char *memory; /* "preferred 0", "none" */
	char *nic;
	int64_t nic_numa_node;
	int8_t bind_verified;
	char *bind_note;
	char **why;
	size_t n_why;
};
extern const struct mo_desc bind_view_desc;

/* ranks: those of one place of the job, in order; info: their node, NULL unknown. ret gets
 * n_ranks appended. */
void bind_explain(const struct nodeinfo *info, const struct recipe_bind *how,
		  const struct rank *ranks, size_t n_ranks, struct bind_view **ret, size_t *n_ret);
