/* See topology.h. */
#include "daemon/core/view/topology.h"

#include "daemon/core/state/slot_health.h"
#include "daemon/core/view/node_state.h"

static const struct mo_field topology_gpu_fields[] = {
	MO_D(topology_gpu, slot, MO_INT, "number of the slot on the node, as LOCAL_RANK counts"),
	MO_D(topology_gpu, model, MO_STR, "name in the catalogue, such as mi300x"),
	MO_D(topology_gpu, bdf, MO_STR, "PCI address"),
	MO_D(topology_gpu, numa_node, MO_INT, "NUMA node that it is next to"),
	MO_D(topology_gpu, nic, MO_STR, "name of the card that serves it"),
	MO_D(topology_gpu, hive, MO_STR, "XGMI hive; null: none", .omit = true),
	MO_D_ID(topology_gpu, job, job_prefix, "job that holds it; null: it is free"),
	MO_D(topology_gpu, rank, MO_INT, "rank of that job that uses it"),
};
static const struct mo_desc topology_gpu_desc = MO_DESC(topology_gpu, topology_gpu_fields);
static const struct mo_field topology_nic_fields[] = {
	MO_D(topology_nic, name, MO_STR, "name of the RDMA device"),
	MO_D(topology_nic, netdev, MO_STR, "network interface of it"),
	MO_D(topology_nic, numa_node, MO_INT, "NUMA node that it is next to"),
	MO_D(topology_nic, state, MO_STR, "state of its port, such as ACTIVE"),
	MO_D(topology_nic, rate_gbps, MO_REAL, "rate of the link, Gbit/s"),
};
static const struct mo_desc topology_nic_desc = MO_DESC(topology_nic, topology_nic_fields);
static const struct mo_field topology_numa_fields[] = {
	MO_D(topology_numa, id, MO_INT, "number of the NUMA node"),
	MO_D(topology_numa, cpus, MO_STR, "its logical CPUs, such as 0-31,128-159"),
	MO_D(topology_numa, mem_bytes, MO_INT, "its memory in bytes"),
};
static const struct mo_desc topology_numa_desc = MO_DESC(topology_numa, topology_numa_fields);
static const struct mo_field topology_view_fields[] = {
	MO_D(topology_view, name, MO_STR, "name of the node"),
	MO_D_ENUM(topology_view, state, node_state_names, "its state"),
	MO_D_VEC(topology_view, numa, &topology_numa_desc, "its NUMA nodes"),
	MO_D_VEC(topology_view, gpus, &topology_gpu_desc, "its GPUs by slot, and who uses them"),
	MO_D_VEC(topology_view, nics, &topology_nic_desc, "its RDMA devices"),
};
const struct mo_desc topology_view_desc = MO_DESC(topology_view, topology_view_fields);

static void add_gpus(const struct nodeinfo *info, struct topology_view *ret)
{
	for (size_t i = 0; i < info->n_gpus; i++) {
		const struct gpu_slot *g = &info->gpus[i];
		struct topology_gpu *shown = MO_ADD(ret, gpus, &topology_gpu_desc);

		shown->slot = g->index;
		shown->numa_node = g->numa_node;
		mo_str_set(&shown->model, g->model);
		mo_str_set(&shown->bdf, g->bdf);
		mo_str_set(&shown->hive, g->hive);
		mo_str_set(&shown->nic, g->nic);
	}
}

/* The k-th GPU of the place is in use. */
static void add_rank(const struct job *j, const struct place *p, size_t k,
		     struct topology_view *ret)
{
	for (size_t i = 0; i < ret->n_gpus; i++)
		if (ret->gpus[i].slot == p->gpus[k]) {
			ret->gpus[i].job = j->id;
			ret->gpus[i].rank = place_rank(p, k);
			return;
		}
}

void topology_view(const struct state *s, const struct node *n, struct topology_view *ret)
{
	mo_str_set(&ret->name, n->name);
	ret->state = node_shown_state(n);
	for (size_t i = 0; i < n->info.n_numa; i++) {
		const struct numa_node *m = &n->info.numa[i];
		struct topology_numa *shown = MO_ADD(ret, numa, &topology_numa_desc);

		shown->id = m->id;
		shown->mem_bytes = m->mem_bytes;
		mo_str_set(&shown->cpus, m->cpus);
	}
	add_gpus(&n->info, ret);
	for (size_t i = 0; i < n->info.n_nics; i++) {
		const struct nic_info *c = &n->info.nics[i];
		struct topology_nic *shown = MO_ADD(ret, nics, &topology_nic_desc);

		shown->numa_node = c->numa_node;
		shown->rate_gbps = c->rate_gbps;
		mo_str_set(&shown->name, c->name);
		mo_str_set(&shown->netdev, c->netdev);
		mo_str_set(&shown->state, c->state);
	}
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);
		const struct place *p = j ? place_of(j, n->name) : NULL;

		for (size_t k = 0; p && k < p->n_gpus; k++)
			add_rank(j, p, k, ret);
	}
}
