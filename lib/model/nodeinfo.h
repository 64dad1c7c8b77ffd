/* What a node has: the discovery helper fills it, the agent sends it in hello, placement and binding read it. Plain value. */
#pragma once
#include "lib/base/desc.h"

struct gpu_slot {
	int64_t index;           /* slot number on the node, LOCAL_RANK's order */
	char *vendor;            /* amd | nvidia | fake */
	char *model;             /* catalogue name such as mi300x, h200, fake */
	char *bdf, *unique_id;   /* NULL for fake */
	int64_t numa_node;       /* MO_NONE = unknown */
	int64_t vram_bytes;
	char *nic;               /* RDMA device paired with it (mlx5_0), NULL = none */
};
struct numa_node {
	int64_t id;
	char *cpus;              /* cpu list of the node, already clipped to what this agent may use: "0-31,128-159" */
	char *cores;             /* sibling groups, one per core, ";" between: "0,128;1,129" */
	char *l3;                /* L3 groups of cpus, ";" between */
	int64_t mem_bytes;
	char *distances;         /* SLIT row "10 12 32" by position in the array, "" unknown */
};
struct nodeinfo {
	char *hostname, *arch, *kernel;
	struct gpu_slot *gpus; size_t n_gpus;
	struct numa_node *numa; size_t n_numa;
	int64_t cpus;            /* usable logical cpus */
	int64_t mem_bytes;
	bool simulated;          /* topology from XML or a fake root: nothing is really bound to it */
	char *driver;            /* amdgpu/rocm or nvidia version text, NULL none */
};
extern const struct mo_desc gpu_slot_desc, numa_node_desc, nodeinfo_desc;
