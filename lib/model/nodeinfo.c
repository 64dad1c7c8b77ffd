/* Descriptions of what a node has. */
#include "lib/model/nodeinfo.h"

#include "lib/model/limits.h"

static const struct mo_field gpu_slot_fields[] = {
	MO_F(gpu_slot, index, MO_INT, .most = MO_GPU_INDEX_MAX, .needed = true),
	MO_F(gpu_slot, vendor, MO_STR),
	MO_F(gpu_slot, model, MO_STR),
	MO_F(gpu_slot, bdf, MO_STR),
	MO_F(gpu_slot, unique_id, MO_STR),
	MO_F(gpu_slot, numa_node, MO_INT),
	MO_F(gpu_slot, vram_bytes, MO_INT, .most = MO_FIT_INT),
	MO_F(gpu_slot, nic, MO_STR),
	MO_F(gpu_slot, partition, MO_INT, .omit = true),
	MO_F(gpu_slot, compute_partition, MO_STR, .omit = true),
	MO_F(gpu_slot, memory_partition, MO_STR, .omit = true),
	MO_F(gpu_slot, hive, MO_STR, .omit = true),
	MO_F(gpu_slot, render_minor, MO_INT, .omit = true),
};
const struct mo_desc gpu_slot_desc = MO_DESC(gpu_slot, gpu_slot_fields);

static const struct mo_field gpu_link_fields[] = {
	MO_F(gpu_link, from, MO_INT),
	MO_F(gpu_link, to, MO_INT),
	MO_F(gpu_link, type, MO_STR),
	MO_F(gpu_link, weight, MO_INT),
};
const struct mo_desc gpu_link_desc = MO_DESC(gpu_link, gpu_link_fields);

static const struct mo_field nic_info_fields[] = {
	MO_F(nic_info, name, MO_STR),
	MO_F(nic_info, bdf, MO_STR),
	MO_F(nic_info, netdev, MO_STR),
	MO_F(nic_info, family, MO_STR),
	MO_F(nic_info, numa_node, MO_INT),
	MO_F(nic_info, port, MO_INT),
	MO_F(nic_info, state, MO_STR),
	MO_F(nic_info, link_layer, MO_STR),
	MO_F(nic_info, rate_gbps, MO_REAL, .most = 1000000000),
	MO_F(nic_info, gid_index, MO_INT),
	MO_F(nic_info, fw, MO_STR),
};
const struct mo_desc nic_info_desc = MO_DESC(nic_info, nic_info_fields);

static const struct mo_field numa_node_fields[] = {
	MO_F(numa_node, id, MO_INT),        MO_F(numa_node, cpus, MO_STR),
	MO_F(numa_node, cores, MO_STR),     MO_F(numa_node, l3, MO_STR),
	MO_F(numa_node, mem_bytes, MO_INT), MO_F(numa_node, distances, MO_STR),
};
const struct mo_desc numa_node_desc = MO_DESC(numa_node, numa_node_fields);

static const struct mo_field node_finding_fields[] = {
	MO_F(node_finding, object, MO_STR),
	MO_F(node_finding, text, MO_STR),
};
const struct mo_desc node_finding_desc = MO_DESC(node_finding, node_finding_fields);

static const struct mo_field nodeinfo_fields[] = {
	MO_F(nodeinfo, hostname, MO_STR),
	MO_F(nodeinfo, arch, MO_STR),
	MO_F(nodeinfo, kernel, MO_STR),
	MO_F_VEC(nodeinfo, gpus, &gpu_slot_desc, .max = MO_GPUS_PER_NODE_MAX),
	MO_F_VEC(nodeinfo, links, &gpu_link_desc, .omit = true, .max = MO_GPU_LINKS_MAX),
	MO_F_VEC(nodeinfo, nics, &nic_info_desc, .omit = true, .max = MO_GPUS_PER_NODE_MAX),
	MO_F_VEC(nodeinfo, numa, &numa_node_desc, .max = MO_NUMA_NODES_MAX),
	MO_F(nodeinfo, cpus, MO_INT, .most = 1 << 24),
	MO_F(nodeinfo, mem_bytes, MO_INT, .most = MO_FIT_INT),
	MO_F(nodeinfo, simulated, MO_BOOL),
	MO_F(nodeinfo, driver, MO_STR),
	MO_F(nodeinfo, cpu_model, MO_STR, .omit = true),
	MO_F(nodeinfo, sockets, MO_INT, .omit = true),
	MO_F_VEC(nodeinfo, findings, &node_finding_desc, .omit = true, .max = MO_GPUS_PER_NODE_MAX),
};
const struct mo_desc nodeinfo_desc = MO_DESC(nodeinfo, nodeinfo_fields);
