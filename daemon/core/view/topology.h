/* A node as a place for ranks: its NUMA nodes, the GPUs beside them with the rank on each, and the
 * cards that serve them. Pure; called by the shell (daemon/api_topology.c). */
#pragma once
#include "daemon/core/state/state.h"

struct topology_gpu {
	int64_t slot;
	char *model, *bdf, *hive, *nic;
	int64_t numa_node;
	int64_t job, rank; /* MO_NONE: nothing runs on it */
};
struct topology_nic {
	char *name, *netdev, *state;
	int64_t numa_node;
	double rate_gbps;
};
struct topology_numa {
	int64_t id;
	char *cpus;
	int64_t mem_bytes;
};
struct topology_view {
	char *name;
	int state;
	struct topology_numa *numa;
	size_t n_numa;
	struct topology_gpu *gpus;
	size_t n_gpus;
	struct topology_nic *nics;
	size_t n_nics;
};
extern const struct mo_desc topology_view_desc;

/* ret: initialised. */
void topology_view(const struct state *s, const struct node *n, struct topology_view *ret);
