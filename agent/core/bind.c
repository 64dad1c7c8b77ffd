/* The binding plan and the judgement of what the kernel made of it. Called by the agent at launch (plan), by stepd after exec (judge), by dry-run and the simulator.
 *
 * A GPU slot owns a fixed share of the whole cores of its NUMA node: the node's cores, minus the reserved ones, divided among its slots in slot order. So jobs that
 * run beside each other on one node never meet, whatever order they come in. Only when the slots outnumber the cores are the free cores divided among this
 * job's ranks, and when those outnumber them too, all of them share all cores and say so. Rules and numbers: hardware facts 2.2 to 2.4 (numa shares, SLIT
 * fallback, preferred instead of bind: a full node must not mean an OOM kill while memory is free elsewhere). */
#include "agent/core/bind.h"

#include <errno.h>
#include <string.h>

#include "lib/base/idset.h"
#include "lib/base/parse.h"

#define RESERVE_CORES 2                /* per NUMA node: core 0 for interrupts and kernel threads, one more for agent and NIC */

static const char *const mem_policy_names[] = { "none", "preferred", "bind", "interleave" };
static const struct mo_field rank_bind_fields[] = {
	MO_F(rank_bind, cpus, MO_STR),
	MO_F(rank_bind, n_cpus, MO_INT),
	MO_F(rank_bind, numa_node, MO_INT),
	MO_F_ENUM(rank_bind, mem_policy, mem_policy_names),
	MO_F(rank_bind, mem_nodes, MO_STR),
	MO_F(rank_bind, nic, MO_STR),
	MO_F(rank_bind, shared, MO_BOOL),
	MO_F(rank_bind, simulated, MO_BOOL),
	MO_F(rank_bind, note, MO_STR),
};
const struct mo_desc rank_bind_desc = MO_DESC(rank_bind, rank_bind_fields);

struct core { struct mo_idset cpus; int64_t first; size_t l3; bool reserved; };
/* The cores that the ranks of one NUMA node (or of unknown NUMA nodes: all cores) are placed on, in L3 order. */
struct pool { struct core *cores; size_t n; };

static void pool_done(struct pool *p) {
	for (size_t i = 0; i < p->n; i++)
		mo_idset_done(&p->cores[i].cpus);
	free(p->cores);
	*p = (struct pool){ 0 };
}

/* Calls fn for each ";"-separated cpu list. */
static int each_group(const char *text, int (*fn)(void *arg, const struct mo_idset *group), void *arg) {
	for (const char *p = text; p && *p; ) {
		size_t n = strcspn(p, ";");
		_cleanup_(mo_freep) char *part = mo_strndup(p, n);
		_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
		int r = mo_idset_parse(part, &set);

		if (r == 0 && mo_idset_count(&set) > 0)
			r = fn(arg, &set);
		if (r < 0)
			return r;
		p += n + (p[n] == ';');
	}
	return 0;
}

struct l3_search { struct pool *pool; size_t from, index; };

static int mark_l3(void *arg, const struct mo_idset *group) {
	struct l3_search *s = arg;

	for (size_t i = s->from; i < s->pool->n; i++)
		if (mo_idset_has(group, (size_t)s->pool->cores[i].first))
			s->pool->cores[i].l3 = s->index;
	s->index++;
	return 0;
}

static int add_core(void *arg, const struct mo_idset *group) {
	struct pool *pool = arg;
	struct core *c = MO_GROW(pool->cores, pool->n);

	mo_idset_copy(&c->cpus, group);
	c->first = mo_idset_next(group, 0);
	return 0;
}

static int by_first(const void *a, const void *b) {
	const struct core *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

static int by_l3(const void *a, const void *b) {
	const struct core *x = a, *y = b;

	return x->l3 != y->l3 ? (x->l3 > y->l3) - (x->l3 < y->l3) : by_first(a, b);
}

/* Adds a NUMA node's cores. l3_base keeps the groups of several nodes apart. */
static int add_node(const struct numa_node *node, size_t l3_base, struct pool *pool) {
	size_t from = pool->n;
	int r = 0;

	if (node->cores && *node->cores) {
		r = each_group(node->cores, add_core, pool);
	} else if (node->cpus) {
		_cleanup_(mo_idset_done) struct mo_idset all = { 0 };
		r = mo_idset_parse(node->cpus, &all);
		for (int64_t cpu = mo_idset_next(&all, 0); r == 0 && cpu >= 0; cpu = mo_idset_next(&all, cpu + 1)) {
			_cleanup_(mo_idset_done) struct mo_idset one = { 0 };
			mo_idset_add(&one, (size_t)cpu);
			add_core(pool, &one);
		}
	}
	if (r < 0)
		return r;
	for (size_t i = from; i < pool->n; i++)
		pool->cores[i].l3 = l3_base;
	struct l3_search search = { .pool = pool, .from = from, .index = l3_base + 1 };
	return each_group(node->l3, mark_l3, &search);
}

/* The usable cores of a NUMA node, MO_NONE = of all. keep: cores that must stay; only what is above them is reserved. */
static int make_pool(const struct nodeinfo *info, int64_t numa, const struct recipe_bind *how, size_t keep, struct pool *pool) {
	size_t reserve = how->reserve_cores == MO_NONE || how->reserve_cores < 0 ? RESERVE_CORES : (size_t)how->reserve_cores;
	size_t n_nodes = 0, kept = 0;

	for (size_t i = 0; i < info->n_numa; i++)
		if (numa == MO_NONE || info->numa[i].id == numa) {
			int r = add_node(&info->numa[i], i * 65536, pool);
			if (r < 0)
				return r;
			n_nodes++;
		}
	if (!pool->n)
		return 0;
	qsort(pool->cores, pool->n, sizeof(*pool->cores), by_first);
	if (reserve > pool->n)
		reserve = pool->n;
	reserve = MO_MIN(reserve * n_nodes, pool->n > keep ? pool->n - keep : 0);
	for (size_t i = 0; i < pool->n; i++) {
		if (i < reserve)
			mo_idset_done(&pool->cores[i].cpus);
		else
			pool->cores[kept++] = pool->cores[i];
	}
	pool->n = kept;
	qsort(pool->cores, pool->n, sizeof(*pool->cores), by_l3);
	return 0;
}

static bool has_cores(const struct numa_node *n) {
	return (n->cores && *n->cores) || (n->cpus && *n->cpus);
}

/* The NUMA node whose cores a GPU of node `numa` uses: itself, or the nearest by SLIT that has any; MO_NONE when unknown. */
static int64_t node_with_cores(const struct nodeinfo *info, int64_t numa) {
	const struct numa_node *own = NULL, *best = NULL;
	int64_t best_distance = INT64_MAX;
	size_t i = 0;

	for (size_t k = 0; k < info->n_numa; k++)
		if (info->numa[k].id == numa)
			own = &info->numa[k];
	if (!own || has_cores(own))
		return own ? numa : MO_NONE;
	for (const char *p = own->distances; p && *p && i < info->n_numa; i++) {
		size_t n = strcspn(p, " ");
		_cleanup_(mo_freep) char *word = mo_strndup(p, n);
		int64_t distance;
		if (mo_parse_i64(word, 0, INT32_MAX, &distance) == 0 && has_cores(&info->numa[i]) && distance < best_distance) {
			best_distance = distance;
			best = &info->numa[i];
		}
		p += n;
		p += strspn(p, " ");
	}
	return best ? best->id : MO_NONE;
}

static const struct gpu_slot *slot_of(const struct nodeinfo *info, int64_t index) {
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].index == index)
			return &info->gpus[i];
	return NULL;
}

/* Cpus of cores[from..to) without the taken ones; whole cores only. Returns how many cores. */
static size_t collect(const struct pool *pool, size_t from, size_t to, const struct mo_idset *taken, bool one_thread, struct mo_idset *ret) {
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		_cleanup_(mo_idset_done) struct mo_idset free_cpus = { 0 };
		mo_idset_copy(&free_cpus, &pool->cores[i].cpus);
		mo_idset_andnot(&free_cpus, taken);
		if (!mo_idset_equal(&free_cpus, &pool->cores[i].cpus))
			continue;
		if (one_thread)
			mo_idset_add(ret, (size_t)pool->cores[i].first);
		else
			mo_idset_or(ret, &pool->cores[i].cpus);
		n++;
	}
	return n;
}

static void set_cpus(struct rank_bind *b, const struct mo_idset *cpus, size_t n_cores) {
	free(b->cpus);
	b->cpus = mo_idset_format(cpus);
	b->n_cpus = (int64_t)MO_MAX(n_cores, (size_t)1);
}

/* All of the pool's cores for each of them; the note says it. */
static void set_shared(const struct pool *pool, bool one_thread, struct rank_bind **members, size_t n, const char *why) {
	_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 }, none = { 0 };
	size_t cores = collect(pool, 0, pool->n, &none, one_thread, &cpus);

	for (size_t i = 0; i < n; i++) {
		set_cpus(members[i], &cpus, cores / n);
		members[i]->shared = true;
		free(members[i]->note);
		members[i]->note = mo_printf("%s %zu %s: %s", n > 1 ? "ranks share" : "the rank shares", cores, cores == 1 ? "core" : "cores", why);
	}
}

struct member { struct rank_bind *bind; size_t position; };   /* position: of the slot among the slots of the pool */

static void share_out(const struct pool *pool, const struct mo_idset *taken, bool one_thread, const struct member *members, size_t n, size_t n_slots) {
	_cleanup_(mo_freep) struct rank_bind **late = mo_alloc_array(n + 1, sizeof(*late));
	_cleanup_(mo_idset_done) struct mo_idset none = { 0 }, used = { 0 };
	size_t n_late = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
		size_t p = members[i].position, cores = 0;

		if (pool->n >= n_slots) {
			cores = collect(pool, p * pool->n / n_slots, (p + 1) * pool->n / n_slots, taken, one_thread, &cpus);
			collect(pool, p * pool->n / n_slots, (p + 1) * pool->n / n_slots, &none, false, &used);
		}
		if (cores)
			set_cpus(members[i].bind, &cpus, cores);
		else
			late[n_late++] = members[i].bind;
	}
	if (!n_late)
		return;
	/* What is left after other jobs and after the shares given above. */
	mo_idset_or(&used, taken);
	struct pool rest = { .cores = mo_alloc_array(pool->n + 1, sizeof(*rest.cores)) };
	for (size_t i = 0; i < pool->n; i++)
		if (!mo_idset_has(&used, (size_t)pool->cores[i].first))
			rest.cores[rest.n++] = pool->cores[i];
	for (size_t i = 0; rest.n >= n_late && i < n_late; i++) {
		_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
		size_t cores = collect(&rest, i * rest.n / n_late, (i + 1) * rest.n / n_late, &none, one_thread, &cpus);
		set_cpus(late[i], &cpus, cores);
	}
	if (rest.n < n_late)
		set_shared(pool, one_thread, late, n_late, pool->n >= n ? "other jobs use the rest" : "there are fewer cores than ranks");
	free(rest.cores);
}

static void set_memory(const struct nodeinfo *info, const struct recipe_bind *how, struct rank_bind *b) {
	const char *memory = how->memory ? how->memory : "preferred";
	_cleanup_(mo_idset_done) struct mo_idset nodes = { 0 };

	if (info->n_numa < 2 || mo_streq(memory, "none"))
		return;
	if (mo_streq(memory, "interleave")) {
		for (size_t i = 0; i < info->n_numa; i++)
			mo_idset_add(&nodes, (size_t)info->numa[i].id);
		b->mem_policy = MEM_INTERLEAVE;
	} else {
		if (b->numa_node == MO_NONE)
			return;
		mo_idset_add(&nodes, (size_t)b->numa_node);
		b->mem_policy = mo_streq(memory, "bind") ? MEM_BIND : MEM_PREFERRED;
	}
	b->mem_nodes = mo_idset_format(&nodes);
}

/* Places the ranks whose GPUs use the cores of `numa`. */
static int bind_group(const struct nodeinfo *info, const struct recipe_bind *how, int64_t numa, const int64_t *gpus, size_t n, const struct mo_idset *taken,
		      struct rank_bind *binds, const char **ret_problem) {
	_cleanup_(mo_freep) struct member *members = mo_alloc_array(n + 1, sizeof(*members));
	_cleanup_(pool_done) struct pool pool = { 0 };
	size_t n_members = 0, n_slots = 0;

	for (size_t s = 0; s < info->n_gpus; s++) {
		if (node_with_cores(info, info->gpus[s].numa_node) != numa)
			continue;
		for (size_t i = 0; i < n; i++)
			if (gpus[i] == info->gpus[s].index)
				members[n_members++] = (struct member){ .bind = &binds[i], .position = n_slots };
		n_slots++;
	}
	int r = make_pool(info, numa, how, n_slots, &pool);
	if (r == 0 && pool.n < n_slots) {
		pool_done(&pool);
		r = make_pool(info, numa, how, n_members, &pool);
	}
	if (r < 0) {
		*ret_problem = "a cpu list of the node's topology is malformed";
		return r;
	}
	if (!pool.n) {
		*ret_problem = "the node's topology names no usable CPU";
		return -ENODEV;
	}
	share_out(&pool, taken, mo_streq(how->smt, "one"), members, n_members, n_slots);
	return 0;
}

/* Nothing bound: a fair share of the node's cores for OMP_NUM_THREADS. */
static void leave_unbound(const struct nodeinfo *info, size_t n, struct rank_bind *binds) {
	static const struct recipe_bind no_reserve = { .reserve_cores = 0 };
	_cleanup_(pool_done) struct pool pool = { 0 };
	size_t cores = make_pool(info, MO_NONE, &no_reserve, 0, &pool) == 0 ? pool.n : 0;
	size_t slots = MO_MAX(info->n_gpus, n);

	for (size_t i = 0; i < n; i++) {
		binds[i].n_cpus = (int64_t)MO_MAX(cores / MO_MAX(slots, (size_t)1), (size_t)1);
		binds[i].note = mo_strdup("not bound: bind.cpu is none");
	}
}

static int bind_ranks(const struct nodeinfo *info, const struct recipe_bind *how, const int64_t *gpus, size_t n, const char *taken_cpus, struct rank_bind *binds, struct mo_error *err) {
	_cleanup_(mo_idset_done) struct mo_idset taken = { 0 };
	bool unbound = mo_streq(how->cpu, "none");
	const char *problem = NULL;

	if (mo_idset_parse(taken_cpus ? taken_cpus : "", &taken) < 0)
		return mo_error_set(err, -EINVAL, "bind: the list of used cpus '%s' is malformed", taken_cpus);
	for (size_t i = 0; i < n; i++) {
		const struct gpu_slot *slot = slot_of(info, gpus[i]);
		if (!slot)
			return mo_error_set(err, -EINVAL, "bind: GPU slot %lld does not exist on this node, which has %zu: check that no GPU was lost", (long long)gpus[i], info->n_gpus);
		binds[i].numa_node = node_with_cores(info, slot->numa_node);
		binds[i].simulated = info->simulated;
		binds[i].mem_policy = MEM_NONE;
		if (!mo_streq(how->nic, "none"))
			binds[i].nic = mo_strdup(slot->nic);
	}
	if (unbound)
		leave_unbound(info, n, binds);
	for (size_t i = 0; i < n && !unbound; i++) {
		if (binds[i].cpus)
			continue;
		int r = bind_group(info, how, binds[i].numa_node, gpus, n, &taken, binds, &problem);
		if (r < 0)
			return mo_error_set(err, r, "bind: %s: set bind.cpu to none, or repair the discovery of this node", problem);
	}
	for (size_t i = 0; i < n; i++)
		set_memory(info, how, &binds[i]);
	return 0;
}

int bind_plan(const struct nodeinfo *info, const struct recipe_bind *how, const int64_t *gpus, size_t n, const char *taken_cpus, struct rank_bind **ret, size_t *n_ret, struct mo_error *err) {
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

/* Kernel text such as "prefer:1", "prefer (many):0-1", "bind=static:0", "interleave:0-3", "default" (mm/mempolicy.c, mpol_to_str). */
static bool policy_matches(const struct rank_bind *want, const char *text) {
	static const char *const kernel_names[] = { "default", "prefer", "bind", "interleave" };
	const char *nodes = strrchr(text, ':');
	_cleanup_(mo_idset_done) struct mo_idset have = { 0 }, wanted = { 0 };

	if (want->mem_policy < MEM_NONE || want->mem_policy > MEM_INTERLEAVE || !mo_starts_with(text, kernel_names[want->mem_policy]) || !nodes)
		return false;
	return mo_idset_parse(nodes + 1, &have) == 0 && mo_idset_parse(want->mem_nodes ? want->mem_nodes : "", &wanted) == 0 && mo_idset_equal(&have, &wanted);
}

static int8_t judge(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy, char **ret_note) {
	_cleanup_(mo_idset_done) struct mo_idset have = { 0 }, wanted = { 0 };

	if (want->simulated) {
		*ret_note = mo_strdup("simulated topology");
		return -1;
	}
	if (!want->cpus) {
		*ret_note = mo_strdup(want->note ? want->note : "not bound");
		return -1;
	}
	if (!allowed_cpus || mo_idset_parse(allowed_cpus, &have) < 0 || mo_idset_parse(want->cpus, &wanted) < 0) {
		*ret_note = mo_strdup("the kernel's list of allowed cpus could not be read");
		return -1;
	}
	if (!mo_idset_equal(&have, &wanted)) {
		*ret_note = mo_printf("asked for cpus %s, the kernel allows %s", want->cpus, allowed_cpus);
		return 0;
	}
	if (want->mem_policy > MEM_NONE && !numa_policy) {
		*ret_note = mo_strdup("the kernel's memory policy could not be read");
		return -1;
	}
	if (want->mem_policy > MEM_NONE && !policy_matches(want, numa_policy)) {
		*ret_note = mo_printf("asked for memory policy %s on node %s, the kernel says %s", mem_policy_names[want->mem_policy], want->mem_nodes ? want->mem_nodes : "?", numa_policy);
		return 0;
	}
	*ret_note = mo_strdup(want->note);
	return 1;
}

void bind_judge(const struct rank_bind *want, const char *allowed_cpus, const char *numa_policy, int8_t *ret_verified, char **ret_note) {
	char *text = NULL;

	*ret_verified = judge(want, allowed_cpus, numa_policy, &text);
	*ret_note = text;
}
