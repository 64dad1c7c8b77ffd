/* What a node has: the discovery helper fills it, the agent sends it in hello, placement and
 * binding read it. Plain value. */
#pragma once
#include "lib/base/desc.h"

struct gpu_slot {
	int64_t index; /* slot number on the node, LOCAL_RANK's order */
	char *vendor;  /* amd | nvidia | fake */
	char *model;   /* catalogue name such as mi300x, h200, fake */
	/* NULL for fake; unique_id also where it is missing or two GPUs have the same: then the
	 * bdf is the name */
	char *bdf, *unique_id;
	int64_t numa_node; /* MO_NONE = unknown */
	int64_t vram_bytes;
	char *nic; /* RDMA device paired with it (mlx5_0), NULL = none */
	/* number of the compute partition of a partitioned GPU (CPX: 0..7), MO_NONE = whole GPU */
	int64_t partition;
	/* SPX CPX ..., NPS1 ...: of the GPU (gpu_nps), not of the CPU; NULL unknown */
	char *compute_partition, *memory_partition;
	char *hive;           /* XGMI hive, 16 hexadecimal digits; NULL none */
	int64_t render_minor; /* /dev/dri/renderD<n>; MO_NONE unknown */
};
/* Weight of the path between two GPUs (KFD io_links/p2p_links: 15 = one XGMI hop of one hive);
 * only pairs that the driver names. Each pair once, from < to; the way back only where it
 * differs. */
struct gpu_link {
	int64_t from, to;
	char *type;
	int64_t weight;
}; /* slots; xgmi | pcie */
struct nic_info {
	char *name;         /* RDMA device: mlx5_0, bnxt_re0, ionic_0 */
	char *bdf, *netdev; /* NULL unknown */
	/* mellanox | broadcom | ainic | other: selects the environment profile */
	char *family;
	int64_t numa_node;
	/* lowest active port, the lowest where none is; what follows is of this port. MO_NONE
	 * none */
	int64_t port;
	char *state, *link_layer; /* ACTIVE DOWN ...; InfiniBand | Ethernet */
	double rate_gbps;
	/* lowest index of a RoCE v2 GID with a routable (IPv4-mapped or global) address; MO_NONE
	 * none or InfiniBand */
	int64_t gid_index;
	char *fw;
};
struct numa_node {
	int64_t id;
	/* cpu list of the node, already clipped to what this agent may use: "0-31,128-159" */
	char *cpus;
	char *cores; /* sibling groups, one per core, ";" between: "0,128;1,129" */
	char *l3;    /* L3 groups of cpus, ";" between */
	int64_t mem_bytes;
	char *distances; /* SLIT row "10 12 32" by position in the array, "" unknown */
};
/* Something odd that discovery saw and went on: two GPUs with one unique_id, a numa_node that
 * does not exist. */
struct node_finding {
	char *object, *text;
};
struct nodeinfo {
	char *hostname, *arch, *kernel;
	struct gpu_slot *gpus;
	size_t n_gpus;
	struct gpu_link *links;
	size_t n_links;
	struct nic_info *nics;
	size_t n_nics;
	struct numa_node *numa;
	size_t n_numa;
	int64_t cpus; /* usable logical cpus */
	int64_t mem_bytes;
	/* topology from XML or a fake root: nothing is really bound to it */
	bool simulated;
	char *driver; /* amdgpu/rocm or nvidia version text, NULL none */
	char *cpu_model;
	int64_t sockets; /* cpu_nps = NUMA nodes with memory / sockets */
	struct node_finding *findings;
	size_t n_findings;
};
extern const struct mo_desc gpu_slot_desc, gpu_link_desc, nic_info_desc, numa_node_desc,
	node_finding_desc, nodeinfo_desc;
