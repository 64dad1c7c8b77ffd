/* Descriptions of what a node has. */
#include "lib/model/nodeinfo.h"

#include "lib/model/limits.h"

static const struct mo_field gpu_slot_fields[] = {
	MO_D(gpu_slot, index, MO_INT, "number of the slot on the node, in the order of LOCAL_RANK",
	     .most = MO_GPU_INDEX_MAX, .needed = true),
	MO_D(gpu_slot, vendor, MO_STR, "amd, nvidia or fake"),
	MO_D(gpu_slot, model, MO_STR, "name in the catalogue, such as mi300x"),
	MO_D(gpu_slot, bdf, MO_STR, "PCI address"),
	MO_D(gpu_slot, unique_id, MO_STR,
	     "number that the vendor gave this GPU; null: none, or two have the same"),
	MO_D(gpu_slot, numa_node, MO_INT, "NUMA node that it is next to"),
	MO_D(gpu_slot, vram_bytes, MO_INT, "memory in bytes", .most = MO_FIT_INT),
	MO_D(gpu_slot, nic, MO_STR, "RDMA device paired with it"),
	MO_D(gpu_slot, partition, MO_INT, "of a partitioned GPU, number of the compute partition",
	     .omit = true),
	MO_D(gpu_slot, compute_partition, MO_STR,
	     "how its compute units are partitioned, such as SPX", .omit = true),
	MO_D(gpu_slot, memory_partition, MO_STR, "how its memory is partitioned, such as NPS1",
	     .omit = true),
	MO_D(gpu_slot, hive, MO_STR, "XGMI hive, 16 hexadecimal digits", .omit = true),
	MO_D(gpu_slot, render_minor, MO_INT, "N of /dev/dri/renderDN", .omit = true),
};
const struct mo_desc gpu_slot_desc = MO_DESC(gpu_slot, gpu_slot_fields);

static const struct mo_field gpu_link_fields[] = {
	MO_D(gpu_link, from, MO_INT, "slot of one GPU, the lower"),
	MO_D(gpu_link, to, MO_INT, "slot of the other"),
	MO_D(gpu_link, type, MO_STR, "xgmi or pcie"),
	MO_D(gpu_link, weight, MO_INT, "weight of the path as the driver says; 15 = one XGMI hop"),
};
const struct mo_desc gpu_link_desc = MO_DESC(gpu_link, gpu_link_fields);

static const struct mo_field nic_info_fields[] = {
	MO_D(nic_info, name, MO_STR, "name of the RDMA device"),
	MO_D(nic_info, bdf, MO_STR, "PCI address"),
	MO_D(nic_info, netdev, MO_STR, "network interface of the device"),
	MO_D(nic_info, family, MO_STR, "mellanox, broadcom, ainic or other"),
	MO_D(nic_info, numa_node, MO_INT, "NUMA node that it is next to"),
	MO_D(nic_info, port, MO_INT,
	     "lowest active port, or the lowest; what follows is of this port"),
	MO_D(nic_info, state, MO_STR, "state of the port, such as ACTIVE"),
	MO_D(nic_info, link_layer, MO_STR, "InfiniBand or Ethernet"),
	MO_D(nic_info, rate_gbps, MO_REAL, "rate of the link, Gbit/s", .most = 1000000000),
	MO_D(nic_info, gid_index, MO_INT, "lowest index of a RoCE v2 address that is routable"),
	MO_D(nic_info, fw, MO_STR, "version of its firmware"),
	MO_D(nic_info, uverbs, MO_STR, "its device file in /dev/infiniband", .omit = true),
};
const struct mo_desc nic_info_desc = MO_DESC(nic_info, nic_info_fields);

static const struct mo_field numa_node_fields[] = {
	MO_D(numa_node, id, MO_INT, "number of the NUMA node"),
	MO_D(numa_node, cpus, MO_STR, "CPUs of it that the agent may use, as a list"),
	MO_D(numa_node, cores, MO_STR, "the same by core, semicolons between"),
	MO_D(numa_node, l3, MO_STR, "the same by L3 cache, semicolons between"),
	MO_D(numa_node, mem_bytes, MO_INT, "memory in bytes"),
	MO_D(numa_node, distances, MO_STR, "distances to all NUMA nodes, as the firmware says"),
};
const struct mo_desc numa_node_desc = MO_DESC(numa_node, numa_node_fields);

static const struct mo_field node_finding_fields[] = {
	MO_D(node_finding, object, MO_STR, "what it is about"),
	MO_D(node_finding, text, MO_STR, "what is odd"),
};
const struct mo_desc node_finding_desc = MO_DESC(node_finding, node_finding_fields);

static const struct mo_field nodeinfo_fields[] = {
	MO_D(nodeinfo, hostname, MO_STR, "name that the machine gives itself"),
	MO_D(nodeinfo, arch, MO_STR, "architecture of its CPUs"),
	MO_D(nodeinfo, kernel, MO_STR, "version of its kernel"),
	MO_D_VEC(nodeinfo, gpus, &gpu_slot_desc, "its GPUs by slot", .max = MO_GPUS_PER_NODE_MAX),
	MO_D_VEC(nodeinfo, links, &gpu_link_desc, "paths between GPUs that the driver names",
		 .omit = true, .max = MO_GPU_LINKS_MAX),
	MO_D_VEC(nodeinfo, nics, &nic_info_desc, "its RDMA devices", .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
	MO_D_VEC(nodeinfo, numa, &numa_node_desc, "its NUMA nodes", .max = MO_NUMA_NODES_MAX),
	MO_D(nodeinfo, cpus, MO_INT, "logical CPUs that the agent may use", .most = 1 << 24),
	MO_D(nodeinfo, mem_bytes, MO_INT, "memory in bytes", .most = MO_FIT_INT),
	MO_D(nodeinfo, simulated, MO_BOOL,
	     "read from a description: nothing is really bound to it"),
	MO_D(nodeinfo, walls, MO_BOOL,
	     "a step that has some of the GPUs sees the device files of these only", .omit = true),
	MO_D(nodeinfo, images, MO_BOOL, "it can run a step in an image (engine.container)",
	     .omit = true),
	MO_D(nodeinfo, image_root, MO_BOOL,
	     "a step can be root in its image (engine.container.user)", .omit = true),
	MO_D_LIST(nodeinfo, holders, MO_STRS,
		  "container runtimes that may start a step's container "
		  "(engine.container.runtime)",
		  .omit = true),
	MO_D(nodeinfo, driver, MO_STR, "version of the GPU driver; null: none"),
	MO_D(nodeinfo, cpu_model, MO_STR, "model of its CPUs", .omit = true),
	MO_D(nodeinfo, sockets, MO_INT, "sockets with a CPU", .omit = true),
	MO_D_VEC(nodeinfo, findings, &node_finding_desc, "what is odd about it", .omit = true,
		 .max = MO_GPUS_PER_NODE_MAX),
};
const struct mo_desc nodeinfo_desc = MO_DESC(nodeinfo, nodeinfo_fields);
