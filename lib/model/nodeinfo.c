/* Descriptions of what a node has. */
#include "lib/model/nodeinfo.h"

#include "lib/model/limits.h"

static const struct mo_field gpu_slot_fields[] = {
	MO_F(gpu_slot, index, MO_INT),
	MO_F(gpu_slot, vendor, MO_STR),
	MO_F(gpu_slot, model, MO_STR),
	MO_F(gpu_slot, bdf, MO_STR),
	MO_F(gpu_slot, unique_id, MO_STR),
	MO_F(gpu_slot, numa_node, MO_INT),
	MO_F(gpu_slot, vram_bytes, MO_INT),
	MO_F(gpu_slot, nic, MO_STR),
};
const struct mo_desc gpu_slot_desc = MO_DESC(gpu_slot, gpu_slot_fields);

static const struct mo_field numa_node_fields[] = {
	MO_F(numa_node, id, MO_INT),
	MO_F(numa_node, cpus, MO_STR),
	MO_F(numa_node, cores, MO_STR),
	MO_F(numa_node, l3, MO_STR),
	MO_F(numa_node, mem_bytes, MO_INT),
	MO_F(numa_node, distances, MO_STR),
};
const struct mo_desc numa_node_desc = MO_DESC(numa_node, numa_node_fields);

static const struct mo_field nodeinfo_fields[] = {
	MO_F(nodeinfo, hostname, MO_STR),
	MO_F(nodeinfo, arch, MO_STR),
	MO_F(nodeinfo, kernel, MO_STR),
	MO_F_VEC(nodeinfo, gpus, &gpu_slot_desc, .max = MO_GPUS_PER_NODE_MAX),
	MO_F_VEC(nodeinfo, numa, &numa_node_desc, .max = MO_NUMA_NODES_MAX),
	MO_F(nodeinfo, cpus, MO_INT),
	MO_F(nodeinfo, mem_bytes, MO_INT),
	MO_F(nodeinfo, simulated, MO_BOOL),
	MO_F(nodeinfo, driver, MO_STR),
};
const struct mo_desc nodeinfo_desc = MO_DESC(nodeinfo, nodeinfo_fields);
