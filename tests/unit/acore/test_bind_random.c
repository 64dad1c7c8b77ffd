/* The binding plan of random machines: what must hold of every plan. One seed each, so that a
 * failure names its machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/bind/bind.h"
#include "lib/base/buf.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/model/recipe.h"

#define MACHINES 1500
#define NODES_MAX 8
#define GPUS_MAX 64

static uint64_t state, current;

static size_t below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (size_t)(state >> 11) % n : 0;
}

struct machine {
	struct nodeinfo info;
	struct recipe_bind how;
	size_t n_cores, cores[NODES_MAX], l3[NODES_MAX], slots[NODES_MAX], unknown;
	struct mo_idset cpus[NODES_MAX];
};

/* Node n: cores first.. with `smt` threads; one in ten is not in the cpuset. */
static void make_node(struct machine *m, size_t n, size_t first, size_t cores, size_t smt,
		      size_t l3)
{
	struct numa_node *node = MO_ADD(&m->info, numa, &numa_node_desc);
	_cleanup_(mo_idset_done) struct mo_idset group = { 0 };
	struct mo_buf list = { 0 }, groups = { 0 };
	size_t in_group = 0;

	for (size_t c = 0; c < cores; c++) {
		_cleanup_(mo_idset_done) struct mo_idset core = { 0 };
		bool is_left_out = below(10) == 0;
		for (size_t t = 0; t < smt && !is_left_out; t++)
			mo_idset_add(&core, first + c + t * m->n_cores);
		mo_idset_or(&m->cpus[n], &core);
		mo_idset_or(&group, &core);
		in_group += !is_left_out;
		m->cores[n] += !is_left_out;
		m->l3[n] = MO_MAX(m->l3[n], in_group);
		_cleanup_(mo_freep) char *text = mo_idset_format(&core);
		mo_buf_printf(&list, "%s%s", list.len && !is_left_out ? ";" : "", text);
		if (l3 && ((c + 1) % l3 == 0 || c + 1 == cores)) {
			_cleanup_(mo_freep) char *cpus = mo_idset_format(&group);
			mo_buf_printf(&groups, "%s%s", groups.len && *cpus ? ";" : "", cpus);
			mo_idset_done(&group);
			group = (struct mo_idset){ 0 };
			in_group = 0;
		}
	}
	node->id = (int64_t)n;
	node->mem_bytes = below(8) ? 1 << 30 : 0;
	node->cpus = mo_idset_format(&m->cpus[n]);
	node->cores = mo_buf_take(&list);
	node->l3 = mo_buf_take(&groups);
}

static void make_machine(struct machine *m, uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15u + 1;
	*m = (struct machine){ 0 };
	mo_desc_init(&nodeinfo_desc, &m->info);
	mo_desc_init(&recipe_bind_desc, &m->how);
	size_t nodes = 1 + below(NODES_MAX), smt = 1 + below(2),
	       each = 1 + below(below(2) ? 8 : 96), l3 = below(5) ? 1 + below(16) : 0,
	       gpus = 1 + below(below(3) ? 8 : GPUS_MAX);
	size_t lost = below(6) == 0 ? below(nodes) : nodes, mode = below(4);
	/* thread t of core c is cpu c + t * n_cores */
	m->n_cores = nodes * each;
	for (size_t n = 0; n < nodes; n++)
		make_node(m, n, n * each, n == lost && nodes > 1 ? 0 : each, smt, l3);
	for (size_t n = 0; n < nodes; n++) {
		struct mo_buf row = { 0 };
		for (size_t k = 0; k < nodes; k++)
			mo_buf_printf(&row, "%s%zu", k ? " " : "", k == n ? 10 : 11 + below(20));
		m->info.numa[n].distances = mo_buf_take(&row);
	}
	for (size_t g = 0; g < gpus; g++) {
		struct gpu_slot *slot = MO_ADD(&m->info, gpus, &gpu_slot_desc);
		slot->index = (int64_t)g;
		slot->numa_node = mode == 0                    ? MO_NONE
				  : mode == 1 && below(3) == 0 ? -1
							       : (int64_t)below(nodes);
		m->unknown += slot->numa_node == MO_NONE || slot->numa_node < 0;
	}
	m->how.reserve_cores = (int64_t)below(5);
	m->how.smt = mo_strdup(below(3) ? "auto" : "one");
	m->how.memory = mo_strdup(
		(const char *const[]){ "preferred", "bind", "interleave", "none" }[below(4)]);
}

static void drop(struct machine *m)
{
	mo_desc_done(&nodeinfo_desc, &m->info);
	mo_desc_done(&recipe_bind_desc, &m->how);
	for (size_t n = 0; n < NODES_MAX; n++)
		mo_idset_done(&m->cpus[n]);
}

static size_t plan(const struct machine *m, const int64_t *gpus, size_t n, const char *taken,
		   struct rank_bind **ret)
{
	struct mo_error err = { 0 };
	size_t n_ret = 0;

	if (bind_plan(&m->info, &m->how, gpus, n, taken, ret, &n_ret, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(n_ret, n);
	return n_ret;
}

/* Cores touched: any thread of them. */
static void cores_of(const struct machine *m, const char *cpus, struct mo_idset *ret)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 }, outside = { 0 };

	assert_int_equal(mo_idset_parse(cpus, &set), 0);
	mo_idset_copy(&outside, &set);
	for (size_t n = 0; n < m->info.n_numa; n++)
		mo_idset_andnot(&outside, &m->cpus[n]);
	assert_int_equal(mo_idset_count(&outside), 0);
	for (int64_t c = mo_idset_next(&set, 0); c >= 0; c = mo_idset_next(&set, c + 1))
		mo_idset_add(ret, (size_t)c % m->n_cores);
}

/* Whether every slot can have a core of its own: cores of each node against the slots that use
 * them. Slots of an empty or unknown node are only judged when all are unknown. */
static bool is_roomy(struct machine *m)
{
	size_t cores = 0;
	bool empty = false;

	memset(m->slots, 0, sizeof(m->slots));
	for (size_t n = 0; n < m->info.n_numa; n++)
		cores += m->cores[n];
	if (m->unknown == m->info.n_gpus)
		return cores >= m->info.n_gpus;
	for (size_t g = 0; g < m->info.n_gpus; g++) {
		int64_t n = m->info.gpus[g].numa_node;
		if (n == MO_NONE || n < 0 || m->cores[n] == 0)
			empty = true;
		else
			m->slots[n]++;
	}
	for (size_t n = 0; n < m->info.n_numa; n++)
		if (m->slots[n] > m->cores[n])
			return false;
	return !empty;
}

static void check_apart(const struct machine *m, const struct rank_bind *binds, size_t n,
			struct mo_idset *used)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_idset_done) struct mo_idset mine = { 0 }, both = { 0 };
		assert_non_null(binds[i].cpus);
		cores_of(m, binds[i].cpus, &mine);
		assert_true(mo_idset_count(&mine) >= 1);
		if (binds[i].shared)
			continue;
		assert_int_equal(binds[i].n_cpus, mo_idset_count(&mine));
		mo_idset_copy(&both, &mine);
		mo_idset_and(&both, used);
		assert_int_equal(mo_idset_count(&both), 0);
		mo_idset_or(used, &mine);
	}
}

/* Of a job on all slots: shares of a node are fair and what is reserved stays free. */
static void check_fair(const struct machine *m, const struct rank_bind *binds, const int64_t *gpus,
		       size_t n)
{
	for (size_t node = 0; node < m->info.n_numa && m->unknown == 0; node++) {
		size_t least = SIZE_MAX, most = 0, sum = 0;
		for (size_t i = 0; i < n; i++)
			if (m->info.gpus[gpus[i]].numa_node == (int64_t)node) {
				least = MO_MIN(least, (size_t)binds[i].n_cpus);
				most = MO_MAX(most, (size_t)binds[i].n_cpus);
				sum += (size_t)binds[i].n_cpus;
				assert_int_equal(binds[i].numa_node, node);
			}
		if (!sum)
			continue;
		assert_true(most - least <= MO_MAX(m->l3[node], (size_t)1));
		assert_true(most - least <= 1 || 3 * least >= 2 * most);
		assert_int_equal(sum, m->cores[node] - MO_MIN((size_t)m->how.reserve_cores,
							      m->cores[node] - m->slots[node]));
	}
}

static void check_memory(const struct machine *m, const struct rank_bind *b)
{
	_cleanup_(mo_idset_done) struct mo_idset nodes = { 0 };

	assert_true((b->mem_policy == MEM_NONE) == (b->mem_nodes == NULL));
	if (!b->mem_nodes)
		return;
	assert_int_equal(mo_idset_parse(b->mem_nodes, &nodes), 0);
	bool any = false;
	for (size_t n = 0; n < m->info.n_numa; n++)
		any = any || m->info.numa[n].mem_bytes > 0;
	for (int64_t n = mo_idset_next(&nodes, 0); n >= 0; n = mo_idset_next(&nodes, n + 1))
		assert_true(n < (int64_t)m->info.n_numa && (!any || m->info.numa[n].mem_bytes > 0));
}

static bool same(const struct rank_bind *a, const struct rank_bind *b)
{
	return mo_streq(a->cpus, b->cpus) && mo_streq(a->mem_nodes, b->mem_nodes) &&
	       a->n_cpus == b->n_cpus && mo_streq(a->note, b->note);
}

static void check_machine(uint64_t seed)
{
	struct machine m;
	int64_t gpus[GPUS_MAX];
	struct rank_bind *all = NULL, *again = NULL, *second = NULL;
	_cleanup_(mo_idset_done) struct mo_idset used = { 0 }, used_apart = { 0 };
	struct mo_buf taken = { 0 };

	make_machine(&m, seed);
	size_t n = m.info.n_gpus, cores = 0;
	for (size_t k = 0; k < m.info.n_numa; k++)
		cores += m.cores[k];
	if (!cores) {
		drop(&m);
		return;
	}
	for (size_t i = 0; i < n; i++)
		gpus[i] = (int64_t)i;
	for (size_t i = n; i > 1; i--) {
		size_t k = below(i);
		int64_t swapped = gpus[k];
		gpus[k] = gpus[i - 1];
		gpus[i - 1] = swapped;
	}
	bool roomy = is_roomy(&m);
	size_t n_all = plan(&m, gpus, n, "", &all), n_again = plan(&m, gpus, n, "", &again);
	check_apart(&m, all, n, &used);
	for (size_t i = 0; i < n; i++) {
		assert_true(same(&all[i], &again[i]));
		check_memory(&m, &all[i]);
		assert_false(roomy && all[i].shared);
	}
	if (roomy)
		check_fair(&m, all, gpus, n);
	/* Two jobs: whichever comes first, each gets what it would have beside nobody. */
	size_t n_first = below(n + 1), n_second = n - n_first;
	mo_vec_clear(&rank_bind_desc, (void **)&again, &n_again);
	n_again = plan(&m, gpus, n_first, "", &again);
	for (size_t i = 0; i < n_first; i++)
		mo_buf_printf(&taken, "%s%s", i ? "," : "", again[i].cpus);
	n_second = plan(&m, gpus + n_first, n_second, taken.data ? taken.data : "", &second);
	check_apart(&m, again, n_first, &used_apart);
	if (roomy)
		check_apart(&m, second, n_second, &used_apart);
	for (size_t i = 0; roomy && i < n; i++)
		assert_true(same(&all[i], i < n_first ? &again[i] : &second[i - n_first]));
	mo_vec_clear(&rank_bind_desc, (void **)&all, &n_all);
	mo_vec_clear(&rank_bind_desc, (void **)&again, &n_again);
	mo_vec_clear(&rank_bind_desc, (void **)&second, &n_second);
	mo_buf_done(&taken);
	drop(&m);
}

static void test_random_machines(void **unused)
{
	const char *text = getenv("SEED");
	int64_t one = 0;

	if (text)
		assert_int_equal(mo_parse_i64(text, 1, MACHINES, &one), 0);
	for (uint64_t seed = 1; seed <= MACHINES; seed++)
		if (!one || (uint64_t)one == seed) {
			current = seed;
			check_machine(seed);
		}
	current = 0;
}

/* A failed assertion jumps here: which machine it was. */
static int teardown(void **unused)
{
	if (current)
		print_error("SEED=%llu shows it alone\n", (unsigned long long)current);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(test_random_machines,
								      teardown) };
	return cmocka_run_group_tests_name("acore/bind_random", tests, NULL, NULL);
}
