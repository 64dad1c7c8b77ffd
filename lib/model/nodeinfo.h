/* What a node has: the discovery helper fills it, the agent sends it in hello, placement and
 * binding read it. Plain value. */
#pragma once
#include "lib/base/desc.h"

struct gpu_slot {
	int64_t index;
	char *vendor, *model;
	/* NULL for fake; without unique_id the bdf is the name */
	char *bdf, *unique_id;
	int64_t numa_node, vram_bytes;
	char *nic;
	int64_t partition; /* MO_NONE = whole GPU */
	/* of the GPU (gpu_nps), not of the CPU */
	char *compute_partition, *memory_partition;
	char *hive;
	int64_t render_minor;
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
	char *name, *bdf, *netdev;
	char *family; /* selects the environment profile */
	int64_t numa_node, port;
	char *state, *link_layer;
	double rate_gbps;
	int64_t gid_index; /* IPv4-mapped or global; MO_NONE: none, or InfiniBand */
	char *fw;
	char *uverbs; /* its device file in /dev/infiniband */
};
struct numa_node {
	int64_t id;
	char *cpus;  /* "0-31,128-159" */
	char *cores; /* "0,128;1,129" */
	char *l3;
	int64_t mem_bytes;
	char *distances; /* SLIT row "10 12 32" by position in the array, "" unknown */
};
#define WALLS_OBJECT "device files" /* of a finding: there should be walls and are none */
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
	int64_t cpus, mem_bytes;
	bool simulated; /* topology from XML or a fake root */
	/* a step that has some of the GPUs sees the device files of these only, numbered from 0:
	 * agent/core/bind/walls.h */
	bool walls;
	/* its agent takes launches with a container: it is root, and the kernel can */
	bool images;
	/* and with engine.container.user: root, for the kernel gives user namespaces */
	bool image_root;
	/* container runtimes that it lets start a step's container (engine.container.runtime) */
	char **holders;
	size_t n_holders;
	char *driver, *cpu_model;
	int64_t sockets; /* cpu_nps = NUMA nodes with memory / sockets */
	struct node_finding *findings;
	size_t n_findings;
};
extern const struct mo_desc gpu_slot_desc, gpu_link_desc, nic_info_desc, numa_node_desc,
	node_finding_desc, nodeinfo_desc;
