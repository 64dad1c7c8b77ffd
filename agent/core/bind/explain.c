/* See explain.h. The rules are those of bind.c, shown for one rank; the CPUs are those the rank
 * really has, so where another job's cores were in the way the two differ and that is said. */
#include "agent/core/bind/explain.h"

#include <string.h>

#include "agent/core/bind/bind.h"
#include "lib/base/idset.h"

static const struct mo_field bind_view_fields[] = {
	MO_D(bind_view, rank, MO_INT, "number of the rank"),
	MO_D(bind_view, node, MO_STR, "its node"),
	MO_D(bind_view, local_rank, MO_INT, "number on its node"),
	MO_D(bind_view, gpu, MO_INT, "slot of its GPU"),
	MO_D(bind_view, gpu_model, MO_STR, "model of its GPU"),
	MO_D(bind_view, bdf, MO_STR, "PCI address of its GPU"),
	MO_D(bind_view, numa_node, MO_INT, "NUMA node that it is bound to"),
	MO_D(bind_view, cpus, MO_STR, "CPUs that it is bound to, as a list such as 0-7,64-71"),
	MO_D(bind_view, cores, MO_INT, "whole cores of these; null: not bound"),
	MO_D_LIST(bind_view, l3, MO_STRS, "groups of CPUs with one L3 cache that these touch"),
	MO_D(bind_view, memory, MO_STR, "memory policy, such as preferred 0, or none"),
	MO_D(bind_view, nic, MO_STR, "RDMA device paired with its GPU"),
	MO_D(bind_view, nic_numa_node, MO_INT, "NUMA node of that device"),
	MO_D(bind_view, bind_verified, MO_TRI, "the binding was read back and is as wanted"),
	MO_D(bind_view, bind_note, MO_STR, "what is not as wanted"),
	MO_D_LIST(bind_view, why, MO_STRS, "why it is bound so, a sentence each"),
};
const struct mo_desc bind_view_desc = MO_DESC(bind_view, bind_view_fields);

static void why(struct bind_view *v, char *text)
{
	*MO_GROW(v->why, v->n_why) = text;
}

static const struct gpu_slot *slot_of(const struct nodeinfo *info, int64_t index)
{
	for (size_t i = 0; info && i < info->n_gpus; i++)
		if (info->gpus[i].index == index)
			return &info->gpus[i];
	return NULL;
}

static const struct numa_node *numa_of(const struct nodeinfo *info, int64_t id)
{
	for (size_t i = 0; i < info->n_numa; i++)
		if (info->numa[i].id == id)
			return &info->numa[i];
	return NULL;
}

static const struct nic_info *nic_of(const struct nodeinfo *info, const char *name)
{
	for (size_t i = 0; name && i < info->n_nics; i++)
		if (mo_streq(info->nics[i].name, name))
			return &info->nics[i];
	return NULL;
}

/* Groups ("0,8;1,9") that share a CPU with cpus; list NULL: only counted. *ret_all: how many
 * groups there are. */
static size_t groups_touched(const char *groups, const struct mo_idset *cpus, char ***list,
			     size_t *n_list, size_t *ret_all)
{
	size_t n = 0;

	for (const char *p = groups; p && *p;) {
		_cleanup_(mo_freep) char *text = mo_part(&p, ";");
		_cleanup_(mo_idset_done) struct mo_idset group = { 0 };
		if (mo_idset_parse(text, &group) < 0 || mo_idset_count(&group) == 0)
			continue;
		++*ret_all;
		mo_idset_and(&group, cpus);
		if (mo_idset_count(&group) == 0)
			continue;
		if (list)
			mo_strs_add(list, n_list, text);
		n++;
	}
	return n;
}

static void explain_gpu(const struct nodeinfo *info, const struct gpu_slot *slot,
			struct bind_view *v)
{
	const char *bdf = slot->bdf ? slot->bdf : "no PCI device";

	if (slot->numa_node == MO_NONE || !numa_of(info, slot->numa_node))
		why(v,
		    mo_printf("GPU %lld (%s): its NUMA node is unknown, so any core may serve it",
			      (long long)slot->index, bdf));
	else if (v->numa_node != MO_NONE && slot->numa_node != v->numa_node)
		why(v, mo_printf("GPU %lld (%s) is on NUMA node %lld, which has no usable core: "
				 "node %lld is the nearest that has",
				 (long long)slot->index, bdf, (long long)slot->numa_node,
				 (long long)v->numa_node));
	else
		why(v, mo_printf("GPU %lld (%s) is on NUMA node %lld", (long long)slot->index, bdf,
				 (long long)slot->numa_node));
	if (slot->partition != MO_NONE)
		why(v, mo_printf("the GPU is partition %lld of a card (%s): the partitions of one "
				 "card share its NUMA node and NIC",
				 (long long)slot->partition,
				 slot->compute_partition ? slot->compute_partition : "?"));
}

/* Slots whose ranks would use the node's cores; *ret_used: those of this job. */
static size_t slots_on(const struct nodeinfo *info, int64_t numa, const struct rank *ranks,
		       size_t n_ranks, size_t *ret_used)
{
	size_t n = 0;

	for (size_t i = 0; i < info->n_gpus; i++) {
		if (info->gpus[i].numa_node != numa)
			continue;
		n++;
		for (size_t k = 0; k < n_ranks; k++)
			*ret_used += ranks[k].gpu == info->gpus[i].index;
	}
	return n;
}

static void explain_cores(const struct nodeinfo *info, const struct recipe_bind *how,
			  const struct rank *ranks, size_t n_ranks, const struct rank_bind *plan,
			  struct bind_view *v)
{
	const struct numa_node *node = numa_of(info, v->numa_node);
	_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
	size_t all = 0, cores = 0, n_cpus, used = 0, n_slots, l3_all = 0;

	if (!v->cpus || mo_idset_parse(v->cpus, &cpus) < 0 ||
	    (n_cpus = mo_idset_count(&cpus)) == 0) {
		why(v,
		    mo_strdup(
			    mo_streq(how->cpu, "none")
				    ? "bind.cpu: none: the rank runs wherever the kernel puts it"
				    : "no CPUs are known: the rank is not started, or not bound"));
		return;
	}
	for (size_t i = 0; i < info->n_numa; i++) {
		size_t total = 0;
		cores += groups_touched(info->numa[i].cores, &cpus, NULL, NULL, &total);
		groups_touched(info->numa[i].l3, &cpus, &v->l3, &v->n_l3, &l3_all);
		all += node == &info->numa[i] ? total : 0;
	}
	v->cores = (int64_t)(cores ? cores : n_cpus);
	if (!node || !all)
		return;
	n_slots = slots_on(info, v->numa_node, ranks, n_ranks, &used);
	size_t wanted = how->reserve_cores == MO_NONE ? 2 : (size_t)MO_MAX(how->reserve_cores, 0),
	       retained = MO_MIN(wanted, all > n_slots ? all - n_slots : 0);
	if (retained)
		why(v, mo_printf("%zu of the node's %zu usable cores stay with the system, "
				 "interrupts and the agent (bind.reserve_cores)",
				 retained, all));
	if (retained < wanted)
		why(v, mo_printf("bind.reserve_cores asks for %zu: %s kept, because each GPU slot "
				 "needs a core",
				 wanted, retained ? "fewer are" : "none is"));
	if (n_slots > 0)
		why(v,
		    mo_printf("%zu core%s: the part of its GPU slot when the node's %zu are "
			      "divided among its %zu slot%s in whole cores along L3 caches%s",
			      cores, cores == 1 ? "" : "s", all, n_slots, n_slots == 1 ? "" : "s",
			      retained ? ", without those kept back" : ""));
	if (used < n_slots)
		why(v, mo_printf("%zu of these slots %s not this job's: their cores stay free for "
				 "other jobs",
				 n_slots - used, n_slots - used == 1 ? "is" : "are"));
	if (n_cpus > cores)
		why(v, mo_printf("%zu CPUs: all threads of each core (bind.smt: %s)", n_cpus,
				 how->smt ? how->smt : "auto"));
	else if (mo_streq(how->smt, "one"))
		why(v, mo_strdup("one thread of each core (bind.smt: one)"));
	if (plan && plan->shared)
		why(v, mo_strdup("cores are shared with other ranks: there are fewer than ranks"));
	else if (plan && plan->cpus && !mo_streq(plan->cpus, v->cpus))
		why(v, mo_printf("on an empty node it would have had %s", plan->cpus));
}

static void explain_memory(const struct recipe_bind *how, const struct rank_bind *plan,
			   struct bind_view *v)
{
	if (!plan)
		return;
	v->memory =
		plan->mem_policy > MEM_NONE && plan->mem_policy <= MEM_INTERLEAVE
			? mo_printf("%s %s", mem_policy_names[plan->mem_policy], plan->mem_nodes)
			: mo_strdup("none");
	if (plan->mem_policy == MEM_PREFERRED)
		why(v, mo_printf("memory comes from node %s while it has any (bind.memory: "
				 "preferred); with bind a full node would mean an OOM kill",
				 plan->mem_nodes));
	else if (plan->mem_policy == MEM_NONE)
		why(v,
		    mo_strdup(mo_streq(how->memory, "none") ? "bind.memory: none"
							    : "no memory policy: there is one NUMA "
							      "node, or the GPU's is unknown"));
	else
		why(v, mo_printf("bind.memory: %s", mem_policy_names[plan->mem_policy]));
}

static void explain_nic(const struct nodeinfo *info, const struct recipe_bind *how,
			const struct gpu_slot *slot, struct bind_view *v)
{
	const struct nic_info *nic = nic_of(info, v->nic);

	v->nic_numa_node = nic ? nic->numa_node : MO_NONE;
	if (mo_streq(how->nic, "none"))
		why(v, mo_strdup("bind.nic: none: the library chooses"));
	else if (!v->nic)
		why(v, mo_strdup(info->n_nics ? "no NIC is paired with the GPU"
					      : "the node has no RDMA NIC"));
	else
		why(v,
		    mo_printf("%s (%s) has the deepest PCI switch or root in common with the GPU%s",
			      v->nic, nic && nic->bdf ? nic->bdf : "?",
			      nic && nic->numa_node != MO_NONE && nic->numa_node == slot->numa_node
				      ? ", on the same NUMA node"
				      : ""));
}

struct plans {
	struct rank_bind *items;
	size_t n;
};

static void plans_done(struct plans *p)
{
	mo_vec_clear(&rank_bind_desc, (void **)&p->items, &p->n);
}

void bind_explain(const struct nodeinfo *info, const struct recipe_bind *how,
		  const struct rank *ranks, size_t n_ranks, struct bind_view **ret, size_t *n_ret)
{
	_cleanup_(plans_done) struct plans plans = { 0 };
	_cleanup_(mo_freep) int64_t *gpus = mo_alloc_array(n_ranks + 1, sizeof(*gpus));

	for (size_t i = 0; i < n_ranks; i++)
		gpus[i] = ranks[i].gpu;
	if (info && bind_plan(info, how, gpus, n_ranks, "", &plans.items, &plans.n, NULL) < 0)
		plans.n = 0; /* the node has changed since: what the ranks have is still shown */
	for (size_t i = 0; i < n_ranks; i++) {
		const struct rank *r = &ranks[i];
		const struct rank_bind *plan = i < plans.n ? &plans.items[i] : NULL;
		const struct gpu_slot *slot = slot_of(info, r->gpu);
		struct bind_view *v = mo_vec_add(&bind_view_desc, (void **)ret, n_ret);

		v->rank = r->rank;
		v->node = mo_strdup(r->node);
		v->local_rank = r->local_rank;
		v->gpu = r->gpu;
		v->numa_node = r->numa_node;
		v->cpus = mo_strdup(r->cpus);
		v->nic = mo_strdup(r->nic);
		v->bind_verified = r->bind_verified;
		v->bind_note = mo_strdup(r->bind_note);
		if (!slot) {
			why(v, mo_printf("slot %lld is not among the node's GPUs now",
					 (long long)r->gpu));
			continue;
		}
		v->gpu_model = mo_strdup(slot->model);
		v->bdf = mo_strdup(slot->bdf);
		explain_gpu(info, slot, v);
		explain_cores(info, how, ranks, n_ranks, plan, v);
		explain_memory(how, plan, v);
		explain_nic(info, how, slot, v);
	}
}
