/* The binding plan. Called by the agent at launch, by dry-run and the simulator; what the kernel
 * made of it is judged in bind_judge.c.
 *
 * A GPU slot owns a fixed share of the whole cores of its NUMA node: the node's cores, divided
 * among its slots in slot order along L3 groups, minus the reserved ones (bind_cores.c). So jobs
 * that run beside each other on one node never meet, whatever order they come in. Only when the
 * slots outnumber the cores, or another job holds the share, are the free cores divided among
 * this job's ranks, and when those outnumber them too, all of them share all cores and say so.
 * Memory is preferred near the GPU, not bound: a full node must not mean an OOM kill while
 * memory is free elsewhere. Rules, examples and traps: docs/binding.md. */
#include "agent/core/bind/bind.h"

#include <errno.h>
#include <string.h>

#include "agent/core/bind/bind_cores.h"
#include "lib/base/parse.h"
#include "lib/model/recipe.h"

/* per NUMA node: the lowest for interrupts and kernel threads, one more for agent and NIC */
#define RESERVE_CORES 2

const char *const mem_policy_names[] = { "none", "preferred", "bind", "interleave" };
static const struct mo_field rank_bind_fields[] = {
	MO_D(rank_bind, cpus, MO_STR, "CPU list; null: not bound"),
	MO_D(rank_bind, n_cpus, MO_INT, "cores, for OMP_NUM_THREADS"),
	MO_D(rank_bind, numa_node, MO_INT, "number of the NUMA node; null: unknown"),
	MO_D_ENUM(rank_bind, mem_policy, mem_policy_names, "how memory is asked for"),
	MO_D(rank_bind, mem_nodes, MO_STR, "NUMA nodes of that memory, a list"),
	MO_D(rank_bind, nic, MO_STR, "RDMA device"),
	MO_D(rank_bind, shared, MO_BOOL, "there are fewer cores than ranks: they share them"),
	MO_D(rank_bind, simulated, MO_BOOL, "nothing is really bound: the topology is simulated"),
	MO_D(rank_bind, note, MO_STR, "what a user should know; null: nothing"),
};
const struct mo_desc rank_bind_desc = MO_DESC(rank_bind, rank_bind_fields);

static bool has_cores(const struct numa_node *n)
{
	return (n->cores && *n->cores) || (n->cpus && *n->cpus);
}

static bool has_memory(const struct numa_node *n)
{
	return n->mem_bytes != MO_NONE && n->mem_bytes > 0;
}

static const struct numa_node *numa_of(const struct nodeinfo *info, int64_t id)
{
	for (size_t i = 0; i < info->n_numa; i++)
		if (info->numa[i].id == id)
			return &info->numa[i];
	return NULL;
}

/* NUMA node `numa` if it has what is asked for, or the nearest by SLIT that does; MO_NONE when
 * unknown. */
static int64_t nearest_with(const struct nodeinfo *info, int64_t numa,
			    bool (*has)(const struct numa_node *))
{
	const struct numa_node *own = numa_of(info, numa), *best = NULL;
	int64_t best_distance = INT64_MAX;
	size_t i = 0;

	if (!own || has(own))
		return own ? numa : MO_NONE;
	for (const char *p = own->distances; p && *p && i < info->n_numa; i++) {
		_cleanup_(mo_freep) char *word = mo_part(&p, " ");
		int64_t distance;
		if (mo_parse_i64(word, 0, INT32_MAX, &distance) == 0 && has(&info->numa[i]) &&
		    distance < best_distance) {
			best_distance = distance;
			best = &info->numa[i];
		}
		p += strspn(p, " ");
	}
	return best ? best->id : MO_NONE;
}

static const struct gpu_slot *slot_of(const struct nodeinfo *info, int64_t index)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].index == index)
			return &info->gpus[i];
	return NULL;
}

/* text is taken over */
static void add_note(struct rank_bind *b, char *text)
{
	_cleanup_(mo_freep) char *more = text, *old = TAKE_PTR(b->note);

	b->note = mo_printf("%s%s%s", old ? old : "", old ? "; " : "", more);
}

static void set_cpus(struct rank_bind *b, const struct mo_idset *cpus, size_t n_cores)
{
	free(b->cpus);
	b->cpus = mo_idset_format(cpus);
	b->n_cpus = (int64_t)MO_MAX(n_cores, (size_t)1);
}

/* position: of the slot among the slots of the pool */
struct member {
	struct rank_bind *bind;
	size_t position;
};

/* All of the pool's cores for each of them; the note says it. */
static void set_shared(const struct core_pool *pool, bool one_thread, const struct member *members,
		       size_t n, const char *why)
{
	_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
	size_t cores = 0;

	for (size_t i = 0; i < pool->n; i++)
		if (!pool->cores[i].reserved) {
			core_give(pool, i, one_thread, &cpus);
			cores++;
		}
	for (size_t i = 0; i < n; i++) {
		set_cpus(members[i].bind, &cpus, cores / n);
		members[i].bind->shared = true;
		add_note(members[i].bind,
			 mo_printf("%s %zu %s: %s", n > 1 ? "ranks share" : "the rank shares",
				   cores, cores == 1 ? "core" : "cores", why));
	}
}

/* What other jobs and the shares of this job's other ranks leave, for the ranks that have no
 * share of their own. */
static void share_rest(const struct core_pool *pool, const struct mo_idset *taken,
		       const struct mo_idset *used, bool one_thread, const struct member *late,
		       size_t n, size_t n_all)
{
	_cleanup_(mo_freep) size_t *rest = mo_alloc_array(pool->n + 1, sizeof(*rest));
	size_t n_rest = 0;

	for (size_t i = 0; i < pool->n; i++)
		if (!pool->cores[i].reserved && core_is_free(pool, i, taken) &&
		    core_is_free(pool, i, used))
			rest[n_rest++] = i;
	if (n_rest < n) {
		set_shared(pool, one_thread, late, n,
			   pool->n >= n_all ? "other jobs use the rest"
					    : "there are fewer cores than ranks");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
		for (size_t k = i * n_rest / n; k < (i + 1) * n_rest / n; k++)
			core_give(pool, rest[k], one_thread, &cpus);
		set_cpus(late[i].bind, &cpus, (i + 1) * n_rest / n - i * n_rest / n);
	}
}

static void share_out(const struct core_pool *pool, const struct mo_idset *taken, bool one_thread,
		      const struct member *members, size_t n)
{
	_cleanup_(mo_freep) struct member *late = mo_alloc_array(n + 1, sizeof(*late));
	_cleanup_(mo_idset_done) struct mo_idset used = { 0 };
	size_t n_late = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
		size_t cores = 0;

		for (size_t k = 0; pool->divided && k < pool->n; k++)
			if (pool->cores[k].share == members[i].position &&
			    !pool->cores[k].reserved && core_is_free(pool, k, taken)) {
				core_give(pool, k, one_thread, &cpus);
				core_give(pool, k, false, &used);
				cores++;
			}
		if (cores)
			set_cpus(members[i].bind, &cpus, cores);
		else
			late[n_late++] = members[i];
	}
	if (n_late)
		share_rest(pool, taken, &used, one_thread, late, n_late, n);
}

static void add_mem_node(struct mo_idset *nodes, int64_t id)
{
	if (id != MO_NONE && id >= 0)
		mo_idset_add(nodes, (size_t)id);
}

/* A GPU whose own node has memory but no cores has two near ones. A node without memory is never
 * named: the kernel would quietly take it out of the policy. */
static void set_memory(const struct nodeinfo *info, const struct recipe_bind *how,
		       const struct gpu_slot *slot, struct rank_bind *b)
{
	const char *memory = how->memory ? how->memory : "preferred";
	_cleanup_(mo_idset_done) struct mo_idset nodes = { 0 };
	bool known = false;

	for (size_t i = 0; i < info->n_numa; i++)
		known = known || has_memory(&info->numa[i]);
	if (info->n_numa < 2 || mo_streq(memory, "none"))
		return;
	if (mo_streq(memory, "interleave")) {
		for (size_t i = 0; i < info->n_numa; i++)
			if (!known || has_memory(&info->numa[i]))
				add_mem_node(&nodes, info->numa[i].id);
	} else if (b->numa_node != MO_NONE) {
		const struct numa_node *cores = numa_of(info, b->numa_node);
		if (known)
			add_mem_node(&nodes, nearest_with(info, slot->numa_node, has_memory));
		if (!known || (cores && has_memory(cores)))
			add_mem_node(&nodes, b->numa_node);
	}
	if (!mo_idset_count(&nodes))
		return;
	b->mem_policy = mo_streq(memory, "interleave") ? MEM_INTERLEAVE
			: mo_streq(memory, "bind")     ? MEM_BIND
						       : MEM_PREFERRED;
	b->mem_nodes = mo_idset_format(&nodes);
}

static void set_nic(const struct nodeinfo *info, const struct recipe_bind *how,
		    const struct gpu_slot *slot, struct rank_bind *b)
{
	if (mo_streq(how->nic, "none") || !slot->nic)
		return;
	b->nic = mo_strdup(slot->nic);
	for (size_t i = 0; i < info->n_nics; i++) {
		const struct nic_info *nic = &info->nics[i];
		if (mo_streq(nic->name, slot->nic) && numa_of(info, nic->numa_node) &&
		    numa_of(info, slot->numa_node) && nic->numa_node != slot->numa_node)
			add_note(b,
				 mo_printf("%s is on NUMA node %lld, the GPU on %lld", nic->name,
					   (long long)nic->numa_node, (long long)slot->numa_node));
	}
}

/* Cores of NUMA node i per slot, if it had one more, times 65536. */
static size_t room_on(const struct nodeinfo *info, size_t i, const int64_t *homes)
{
	_cleanup_(pool_done) struct core_pool pool = { 0 };
	size_t slots = 1;

	for (size_t s = 0; s < info->n_gpus; s++)
		slots += homes[s] == info->numa[i].id;
	return pool_fill(info, info->numa[i].id, &pool) == 0 ? pool.n * 65536 / slots : 0;
}

/* The NUMA node whose cores each slot uses. A slot of unknown place uses all of them when no
 * slot's place is known (MO_NONE), else those of the node with the most cores per slot. */
static void find_homes(const struct nodeinfo *info, int64_t *homes)
{
	bool any = false;

	for (size_t s = 0; s < info->n_gpus; s++) {
		homes[s] = nearest_with(info, info->gpus[s].numa_node, has_cores);
		any = any || homes[s] != MO_NONE;
	}
	for (size_t s = 0; any && s < info->n_gpus; s++) {
		size_t most = 0;
		if (homes[s] != MO_NONE)
			continue;
		int64_t best = MO_NONE;
		for (size_t i = 0; i < info->n_numa; i++) {
			size_t room = room_on(info, i, homes);
			if (room > most) {
				most = room;
				best = info->numa[i].id;
			}
		}
		homes[s] = best;
	}
}

/* Places the ranks whose GPUs use the cores of `home`. */
static int bind_group(const struct nodeinfo *info, const struct recipe_bind *how,
		      const int64_t *homes, int64_t home, const int64_t *gpus, size_t n,
		      const struct mo_idset *taken, struct rank_bind *binds,
		      const char **ret_problem)
{
	_cleanup_(mo_freep) struct member *members = mo_alloc_array(n + 1, sizeof(*members));
	_cleanup_(pool_done) struct core_pool pool = { 0 };
	size_t reserve = how->reserve_cores == MO_NONE || how->reserve_cores < 0
				 ? RESERVE_CORES
				 : (size_t)how->reserve_cores;
	size_t n_members = 0, n_slots = 0;

	for (size_t s = 0; s < info->n_gpus; s++) {
		if (homes[s] != home)
			continue;
		for (size_t i = 0; i < n; i++)
			if (gpus[i] == info->gpus[s].index)
				members[n_members++] =
					(struct member){ .bind = &binds[i], .position = n_slots };
		n_slots++;
	}
	int r = pool_fill(info, home, &pool);
	if (r < 0) {
		*ret_problem = "a cpu list of the node's topology is malformed";
		return r;
	}
	if (!pool.n) {
		*ret_problem = "the node's topology names no usable CPU";
		return -ENODEV;
	}
	pool_divide(&pool, n_slots, home == MO_NONE ? reserve * info->n_numa : reserve, n_members);
	share_out(&pool, taken, mo_streq(how->smt, "one"), members, n_members);
	return 0;
}

/* Nothing bound: a fair share of the node's cores for OMP_NUM_THREADS. */
static void leave_unbound(const struct nodeinfo *info, size_t n, struct rank_bind *binds)
{
	_cleanup_(pool_done) struct core_pool pool = { 0 };
	size_t cores = pool_fill(info, MO_NONE, &pool) == 0 ? pool.n : 0;
	size_t slots = MO_MAX(info->n_gpus, n);

	for (size_t i = 0; i < n; i++) {
		binds[i].n_cpus = (int64_t)MO_MAX(cores / MO_MAX(slots, (size_t)1), (size_t)1);
		add_note(&binds[i], mo_strdup("not bound: bind.cpu is none"));
	}
}

static int bind_cpus(const struct nodeinfo *info, const struct recipe_bind *how,
		     const int64_t *gpus, size_t n, const struct mo_idset *taken,
		     struct rank_bind *binds, struct mo_error *err)
{
	_cleanup_(mo_freep) int64_t *homes = mo_alloc_array(info->n_gpus + 1, sizeof(*homes));
	const char *problem = NULL;

	find_homes(info, homes);
	for (size_t i = 0; i < n; i++) {
		if (binds[i].cpus)
			continue;
		int64_t home = homes[slot_of(info, gpus[i]) - info->gpus];
		int r = bind_group(info, how, homes, home, gpus, n, taken, binds, &problem);
		if (r < 0)
			return mo_error_set(err, r,
					    "bind: %s: set bind.cpu to none, or repair the "
					    "discovery of this node",
					    problem);
	}
	for (size_t i = 0; i < n; i++)
		if (binds[i].numa_node == MO_NONE && info->n_numa > 1)
			add_note(&binds[i],
				 mo_strdup(
					 "the GPU's NUMA node is unknown: no memory is preferred"));
	return 0;
}

static int bind_ranks(const struct nodeinfo *info, const struct recipe_bind *how,
		      const int64_t *gpus, size_t n, const char *taken_cpus,
		      struct rank_bind *binds, struct mo_error *err)
{
	_cleanup_(mo_idset_done) struct mo_idset taken = { 0 };

	if (mo_idset_parse(taken_cpus ? taken_cpus : "", &taken) < 0)
		return mo_error_set(err, -EINVAL, "bind: the list of used cpus '%s' is malformed",
				    taken_cpus);
	for (size_t i = 0; i < n; i++) {
		const struct gpu_slot *slot = slot_of(info, gpus[i]);
		if (!slot)
			return mo_error_set(err, -EINVAL,
					    "bind: GPU slot %lld does not exist on this node, "
					    "which has %zu: check that no GPU was lost",
					    (long long)gpus[i], info->n_gpus);
		binds[i].numa_node = nearest_with(info, slot->numa_node, has_cores);
		binds[i].simulated = info->simulated;
		binds[i].mem_policy = MEM_NONE;
		set_nic(info, how, slot, &binds[i]);
		set_memory(info, how, slot, &binds[i]);
	}
	if (!mo_streq(how->cpu, "none"))
		return bind_cpus(info, how, gpus, n, &taken, binds, err);
	leave_unbound(info, n, binds);
	return 0;
}

int bind_plan(const struct nodeinfo *info, const struct recipe_bind *how, const int64_t *gpus,
	      size_t n, const char *taken_cpus, struct rank_bind **ret, size_t *n_ret,
	      struct mo_error *err)
{
	struct rank_bind *binds = NULL;
	size_t n_binds = 0;

	for (size_t i = 0; i < n; i++)
		mo_vec_add(&rank_bind_desc, (void **)&binds, &n_binds);
	int r = bind_ranks(info, how, gpus, n, taken_cpus, binds, err);
	if (r < 0) {
		mo_vec_clear(&rank_bind_desc, (void **)&binds, &n_binds);
		return r;
	}
	*ret = binds;
	*n_ret = n_binds;
	return 0;
}
