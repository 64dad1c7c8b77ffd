/* Binding plan and its verification. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/bind/bind.h"
#include "lib/base/idset.h"
#include "lib/model/recipe.h"

struct bed {
	struct nodeinfo info;
	struct recipe_bind how;
	struct rank_bind *binds;
	size_t n;
	struct mo_error err;
};

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&nodeinfo_desc, &b->info);
	mo_desc_init(&recipe_bind_desc, &b->how);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_vec_clear(&rank_bind_desc, (void **)&b->binds, &b->n);
	mo_desc_done(&nodeinfo_desc, &b->info);
	mo_desc_done(&recipe_bind_desc, &b->how);
	mo_error_done(&b->err);
	free(b);
	return 0;
}

/* A NUMA node with cores first..first+n-1, each with a sibling at +smt (0 = none), L3 groups of
 * `l3` cores. */
static void add_numa(struct bed *b, int64_t id, int first, int n, int smt, int l3,
		     const char *distances)
{
	struct numa_node *node = MO_ADD(&b->info, numa, &numa_node_desc);
	char cores[4096] = "", groups[4096] = "";

	for (int i = 0; i < n; i++) {
		snprintf(cores + strlen(cores), sizeof(cores) - strlen(cores),
			 smt ? "%s%d,%d" : "%s%d", i ? ";" : "", first + i, first + i + smt);
		if (l3 && i % l3 == 0)
			snprintf(groups + strlen(groups), sizeof(groups) - strlen(groups),
				 "%s%d-%d", i ? ";" : "", first + i, first + i + l3 - 1);
	}
	node->id = id;
	node->cores = mo_strdup(cores);
	node->l3 = mo_strdup(groups);
	node->cpus = mo_printf("%d-%d", first, first + n - 1);
	node->distances = mo_strdup(distances);
}

static void add_gpu(struct bed *b, int64_t numa)
{
	struct gpu_slot *g = MO_ADD(&b->info, gpus, &gpu_slot_desc);

	g->index = (int64_t)b->info.n_gpus - 1;
	g->numa_node = numa;
	g->nic = mo_printf("mlx5_%lld", (long long)g->index);
}

/* 8 GPUs, 2 sockets of 96 cores with SMT. */
static void mi300x(struct bed *b)
{
	add_numa(b, 0, 0, 96, 192, 8, "10 32");
	add_numa(b, 1, 96, 96, 192, 8, "32 10");
	for (int i = 0; i < 8; i++)
		add_gpu(b, i / 4);
}

static int plan_taken(struct bed *b, size_t n, const int64_t *gpus, const char *taken)
{
	mo_vec_clear(&rank_bind_desc, (void **)&b->binds, &b->n);
	mo_error_done(&b->err);
	return bind_plan(&b->info, &b->how, gpus, n, taken, &b->binds, &b->n, &b->err);
}

static int plan(struct bed *b, size_t n)
{
	static const int64_t gpus[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	return plan_taken(b, n, gpus, "");
}

static void assert_disjoint(const struct bed *b)
{
	_cleanup_(mo_idset_done) struct mo_idset all = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < b->n; i++) {
		_cleanup_(mo_idset_done) struct mo_idset one = { 0 };
		assert_int_equal(mo_idset_parse(b->binds[i].cpus, &one), 0);
		count += mo_idset_count(&one);
		mo_idset_or(&all, &one);
	}
	assert_int_equal(mo_idset_count(&all), count);
}

static void test_full_node(void **state)
{
	struct bed *b = *state;

	mi300x(b);
	assert_int_equal(plan(b, 8), 0);
	assert_int_equal(b->n, 8);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(b->binds[i].numa_node, i / 4);
		assert_in_range(b->binds[i].n_cpus, 23, 24);
		assert_int_equal(b->binds[i].mem_policy, MEM_PREFERRED);
		assert_string_equal(b->binds[i].mem_nodes, i < 4 ? "0" : "1");
		assert_false(b->binds[i].shared);
		assert_null(b->binds[i].note);
	}
	/* core 0 is reserved, both siblings given, three whole L3 groups */
	assert_string_equal(b->binds[0].cpus, "1-23,193-215");
	/* and the first core of the next share */
	assert_string_equal(b->binds[1].cpus, "25-47,217-239");
	assert_string_equal(b->binds[2].cpus, "48-71,240-263");
	assert_string_equal(b->binds[5].nic, "mlx5_5");
	assert_disjoint(b);
}

static void test_jobs_beside_each_other_never_meet(void **state)
{
	struct bed *b = *state;
	static const int64_t first[] = { 0, 5 }, second[] = { 1, 4 };

	mi300x(b);
	assert_int_equal(plan_taken(b, 2, first, ""), 0);
	_cleanup_(mo_freep) char *a = mo_strdup(b->binds[0].cpus), *c = mo_strdup(b->binds[1].cpus);
	assert_int_equal(plan(b, 8), 0);
	/* a slot's share does not depend on the job's size */
	assert_string_equal(b->binds[0].cpus, a);
	assert_string_equal(b->binds[5].cpus, c);
	_cleanup_(mo_freep) char *taken = mo_printf("%s,%s", a, c);
	assert_int_equal(plan_taken(b, 2, second, taken), 0);
	assert_false(b->binds[0].shared || b->binds[1].shared);
	_cleanup_(mo_idset_done) struct mo_idset mine = { 0 }, others = { 0 };
	mo_idset_parse(b->binds[0].cpus, &mine);
	mo_idset_parse(taken, &others);
	mo_idset_and(&mine, &others);
	assert_int_equal(mo_idset_count(&mine), 0);
}

static void test_taken_share_moves(void **state)
{
	struct bed *b = *state;
	static const int64_t gpu[] = { 0 };

	add_numa(b, 0, 0, 8, 0, 0, "10");
	b->how.reserve_cores = 0;
	add_gpu(b, 0);
	add_gpu(b, 0);
	assert_int_equal(plan_taken(b, 1, gpu, "0-3"), 0);
	assert_string_equal(b->binds[0].cpus, "4-7");
	assert_int_equal(plan_taken(b, 1, gpu, "0-7"), 0);
	assert_true(b->binds[0].shared);
	assert_string_equal(b->binds[0].cpus, "0-7");
	assert_non_null(strstr(b->binds[0].note, "other jobs"));
}

static void test_smt_one_and_none(void **state)
{
	struct bed *b = *state;

	mi300x(b);
	b->how.smt = mo_strdup("one");
	b->how.nic = mo_strdup("none");
	b->how.memory = mo_strdup("none");
	assert_int_equal(plan(b, 4), 0);
	assert_string_equal(b->binds[0].cpus, "1-23");
	assert_null(b->binds[0].nic);
	assert_int_equal(b->binds[0].mem_policy, MEM_NONE);
	b->how.cpu = mo_strdup("none");
	assert_int_equal(plan(b, 4), 0);
	assert_null(b->binds[0].cpus);
	assert_int_equal(b->binds[0].n_cpus, 24);
	mo_str_set(&b->how.memory, "interleave");
	assert_int_equal(plan(b, 1), 0);
	assert_int_equal(b->binds[0].mem_policy, MEM_INTERLEAVE);
	assert_string_equal(b->binds[0].mem_nodes, "0-1");
}

static void test_few_cores(void **state)
{
	struct bed *b = *state;

	add_numa(b, 0, 4, 3, 0, 0, "10");
	for (int i = 0; i < 8; i++)
		add_gpu(b, 0);
	/* 8 slots, 3 cores, 2 ranks: each keeps one, one is reserved */
	assert_int_equal(plan(b, 2), 0);
	assert_false(b->binds[0].shared);
	assert_disjoint(b);
	assert_string_equal(b->binds[0].cpus, "5");
	assert_string_equal(b->binds[1].cpus, "6");
	assert_int_equal(b->binds[0].mem_policy, MEM_NONE); /* one NUMA node */
	assert_int_equal(plan(b, 3), 0);
	assert_disjoint(b); /* nothing reserved */
	assert_int_equal(plan(b, 4), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_true(b->binds[i].shared);
		assert_string_equal(b->binds[i].cpus, "4-6");
		assert_int_equal(b->binds[i].n_cpus, 1);
	}
	assert_string_equal(b->binds[0].note,
			    "ranks share 3 cores: there are fewer cores than ranks");
}

static void test_nearest_node_with_cores(void **state)
{
	struct bed *b = *state;

	add_numa(b, 0, 0, 8, 0, 0, "10 32 12");
	struct numa_node *empty = MO_ADD(&b->info, numa, &numa_node_desc);
	empty->id = 1;
	empty->distances = mo_strdup("32 10 12");
	add_numa(b, 2, 8, 8, 0, 0, "12 12 10");
	add_gpu(b, 1);
	assert_int_equal(plan(b, 1), 0);
	assert_int_equal(b->binds[0].numa_node, 2);
	assert_string_equal(b->binds[0].cpus, "10-15");
	assert_string_equal(b->binds[0].mem_nodes, "2");
}

static void test_unknown_numa_spreads(void **state)
{
	struct bed *b = *state;

	add_numa(b, 0, 0, 4, 0, 0, "10 20");
	add_numa(b, 1, 4, 4, 0, 0, "20 10");
	b->how.reserve_cores = 0;
	add_gpu(b, MO_NONE);
	/* as firmware says it; no such node */
	add_gpu(b, -1);
	assert_int_equal(plan(b, 2), 0);
	assert_string_equal(b->binds[0].cpus, "0-3");
	assert_string_equal(b->binds[1].cpus, "4-7");
	assert_true(b->binds[0].numa_node == MO_NONE);
	assert_int_equal(b->binds[0].mem_policy, MEM_NONE);
}

static void test_gpu_order_is_not_numa_order(void **state)
{
	struct bed *b = *state;
	static const int64_t numa[] = { 3, 3, 1, 1, 0, 0, 2, 2 }; /* MI250X of Tioga */

	for (int i = 0; i < 4; i++)
		add_numa(b, i, i * 16, 16, 64, 8, "10 12 12 12");
	for (int i = 0; i < 8; i++)
		add_gpu(b, numa[i]);
	assert_int_equal(plan(b, 8), 0);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(b->binds[i].numa_node, numa[i]);
	assert_disjoint(b);
	assert_string_equal(b->binds[0].cpus, "49-55,113-119");
	assert_string_equal(b->binds[1].cpus, "57-63,121-127");
}

static void test_errors(void **state)
{
	struct bed *b = *state;
	static const int64_t gpu[] = { 9 }, zero[] = { 0 };

	mi300x(b);
	assert_int_equal(plan_taken(b, 1, gpu, ""), -EINVAL);
	assert_non_null(strstr(b->err.text, "slot 9 does not exist"));
	assert_null(b->binds);
	assert_int_equal(plan_taken(b, 1, zero, "x"), -EINVAL);
	mo_str_set(&b->info.numa[0].cores, "1,2;x");
	assert_int_equal(plan_taken(b, 1, zero, ""), -EINVAL);
	assert_non_null(strstr(b->err.text, "malformed"));
	mo_vec_clear(&numa_node_desc, (void **)&b->info.numa, &b->info.n_numa);
	assert_int_equal(plan_taken(b, 1, zero, ""), -ENODEV);
}

static void judged(const struct rank_bind *want, const char *cpus, const char *policy, int verified,
		   const char *words)
{
	int8_t v = 5;
	_cleanup_(mo_freep) char *note = NULL;

	bind_judge(want, cpus, policy, &v, &note);
	assert_int_equal(v, verified);
	if (words)
		assert_non_null(strstr(note, words));
	else
		assert_null(note);
}

static void test_judge(void **state)
{
	struct rank_bind w;

	mo_desc_init(&rank_bind_desc, &w);
	w.mem_policy = MEM_PREFERRED;
	w.cpus = mo_strdup("2-5");
	w.mem_nodes = mo_strdup("1");
	judged(&w, "2-5", "prefer:1", 1, NULL);
	judged(&w, "2,3-5", "prefer (many):1", 1, NULL);
	judged(&w, "2-5", "prefer=static:1", 1, NULL);
	judged(&w, "2-6", "prefer:1", 0, "asked for cpus 2-5, the kernel allows 2-6");
	judged(&w, "2-5", "prefer:0", 0, "the kernel says prefer:0");
	judged(&w, "2-5", "default", 0, "default");
	judged(&w, "2-5", "bind:1", 0, "bind:1");
	judged(&w, "2-5", NULL, -1, "could not be read");
	judged(&w, NULL, "prefer:1", -1, "could not be read");
	mo_str_set(&w.mem_nodes, "1-2");
	judged(&w, "2-5", "prefer (many):1-2", 1, NULL);
	/* a kernel that can prefer one only */
	judged(&w, "2-5", "prefer:1", 1, NULL);
	judged(&w, "2-5", "prefer:2", 0, "prefer:2");
	judged(&w, "2-5", "prefer (many):1", 0, "many");
	w.mem_policy = MEM_NONE;
	judged(&w, "2-5", NULL, 1, NULL);
	w.note = mo_strdup("ranks share 4 cores");
	judged(&w, "2-5", NULL, 1, "share");
	w.simulated = true;
	judged(&w, "0-1", NULL, -1, "simulated topology");
	w.simulated = false;
	mo_str_set(&w.cpus, NULL);
	mo_str_set(&w.note, NULL);
	judged(&w, "0-1", NULL, -1, "not bound");
	mo_desc_done(&rank_bind_desc, &w);
}

static void test_what_is_unread_is_not_verified(void **state)
{
	struct rank_bind w;

	mo_desc_init(&rank_bind_desc, &w);
	w.mem_policy = MEM_NONE;
	/* not bound: nothing was asked */
	assert_false(bind_unread(&w, NULL, NULL));
	w.cpus = mo_strdup("2-5");
	assert_false(bind_unread(&w, "2-5", NULL)); /* one node: no policy */
	assert_true(bind_unread(&w, NULL, NULL));
	assert_true(bind_unread(&w, "", NULL));
	w.mem_policy = MEM_BIND;
	assert_true(bind_unread(&w, "2-5", NULL));
	assert_false(bind_unread(&w, "2-5", "bind:0"));
	w.simulated = true;
	assert_false(bind_unread(&w, NULL, NULL));
	assert_false(bind_passes("strict", -1, true));
	assert_true(bind_passes("strict", -1, false));
	assert_true(bind_passes("strict", 1, false));
	assert_false(bind_passes("strict", 0, false));
	assert_true(bind_passes("warn", -1, true));
	assert_true(bind_passes("warn", 0, true));
	assert_true(bind_passes("off", 0, true));
	mo_desc_done(&rank_bind_desc, &w);
}

static void test_judge_threads(void **state)
{
	struct rank_bind w;
	struct stray_thread strays[8] = {
		{ .name = "python3", .cpus = mo_strdup("2"), .is_main = true }
	};

	mo_desc_init(&rank_bind_desc, &w);
	w.cpus = mo_strdup("2-5");
	for (int i = 1; i < 8; i++) {
		snprintf(strays[i].name, sizeof(strays[i].name), "proxy%c", '0' + i);
		strays[i].cpus = mo_strdup("0-7");
	}
	assert_null(bind_judge_threads(&w, strays, 0, 64, "0"));
	_cleanup_(mo_freep) char *one = bind_judge_threads(&w, strays + 1, 1, 64, NULL),
				 *main_one = bind_judge_threads(&w, strays, 1, 64, "0"),
				 *many = bind_judge_threads(&w, strays, 8, 64, NULL);
	assert_string_equal(one, "thread proxy1 may run on cpus 0-7");
	assert_string_equal(main_one, "the main thread was moved to cpus 2");
	assert_non_null(strstr(many, "proxy4"));
	assert_null(strstr(many, "proxy5"));
	assert_non_null(strstr(many, "; 7 of 64 threads are not where the rank was bound"));
	w.mem_nodes = mo_strdup("0-1");
	assert_null(bind_judge_threads(&w, NULL, 0, 1, "0-3"));
	assert_null(bind_judge_threads(&w, NULL, 0, 1, NULL));
	_cleanup_(mo_freep) char *memory = bind_judge_threads(&w, NULL, 0, 1, "1-3");
	assert_string_equal(memory, "its control group allows no memory of node 0 any more");
	for (int i = 0; i < 8; i++)
		free(strays[i].cpus);
	mo_desc_done(&rank_bind_desc, &w);
}

static void test_near_memory(void **state)
{
	struct bed *b = *state;

	add_numa(b, 0, 0, 8, 0, 0, "10 32 12");
	struct numa_node *memory = MO_ADD(&b->info, numa, &numa_node_desc);
	memory->id = 1;
	memory->mem_bytes = 1 << 30;
	memory->distances = mo_strdup("32 10 12");
	add_numa(b, 2, 8, 8, 0, 0, "12 12 10");
	b->info.numa[0].mem_bytes = b->info.numa[2].mem_bytes = 1 << 30;
	add_gpu(b, 1);
	assert_int_equal(plan(b, 1), 0);
	assert_int_equal(b->binds[0].mem_policy, MEM_PREFERRED);
	/* its own, which has no cores, and that of its cores */
	assert_string_equal(b->binds[0].mem_nodes, "1-2");
	b->info.numa[2].mem_bytes = 0;
	b->how.memory = mo_strdup("interleave");
	assert_int_equal(plan(b, 1), 0);
	/* the kernel would take a node without memory out of the policy */
	assert_string_equal(b->binds[0].mem_nodes, "0-1");
	mo_str_set(&b->how.memory, "bind");
	assert_int_equal(plan(b, 1), 0);
	assert_string_equal(b->binds[0].mem_nodes, "1");
}

static void test_far_nic(void **state)
{
	struct bed *b = *state;

	mi300x(b);
	for (int i = 0; i < 8; i++) {
		struct nic_info *nic = MO_ADD(&b->info, nics, &nic_info_desc);
		nic->name = mo_printf("mlx5_%d", i);
		nic->numa_node = i == 2 ? 1 : i == 3 ? -1 : i / 4;
	}
	assert_int_equal(plan(b, 8), 0);
	for (int i = 0; i < 8; i++)
		i == 2 ? assert_string_equal(b->binds[i].note,
					     "mlx5_2 is on NUMA node 1, the GPU on 0")
		       : assert_null(b->binds[i].note);
}

/* MI355X on two sockets of 64 cores, two NUMA nodes each: whole L3 groups. */
static void test_quarters(void **state)
{
	struct bed *b = *state;
	static const int64_t numa[] = { 1, 1, 0, 0, 3, 3, 2, 2 };

	for (int i = 0; i < 4; i++)
		add_numa(b, i, i * 32, 32, 128, 8, "10 12 32 32");
	for (int i = 0; i < 8; i++)
		add_gpu(b, numa[i]);
	assert_int_equal(plan(b, 8), 0);
	assert_disjoint(b);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(b->binds[i].numa_node, numa[i]);
		assert_int_equal(b->binds[i].n_cpus, 15);
	}
	assert_string_equal(b->binds[2].cpus, "1-15,129-143");
	assert_string_equal(b->binds[3].cpus, "17-31,145-159");
}

/* 64 partitions on 2 nodes of 96 cores. */
static void test_partitions(void **state)
{
	struct bed *b = *state;
	int64_t gpus[64];

	add_numa(b, 0, 0, 96, 192, 8, "10 32");
	add_numa(b, 1, 96, 96, 192, 8, "32 10");
	for (int i = 0; i < 64; i++) {
		add_gpu(b, i / 32);
		gpus[i] = i;
	}
	assert_int_equal(plan_taken(b, 64, gpus, ""), 0);
	assert_disjoint(b);
	for (size_t i = 0; i < 64; i++)
		assert_in_range(b->binds[i].n_cpus, 2, 3);
}

static void test_one_core_and_one_unknown(void **state)
{
	struct bed *b = *state;
	static const int64_t all[] = { 0, 1, 2 };

	add_numa(b, 0, 0, 1, 0, 1, "10 20");
	add_gpu(b, 0);
	assert_int_equal(plan(b, 1), 0);
	/* a rank's last core is never reserved */
	assert_string_equal(b->binds[0].cpus, "0");
	assert_false(b->binds[0].shared);
	add_numa(b, 1, 1, 4, 0, 4, "20 10");
	add_gpu(b, MO_NONE);
	add_gpu(b, 1);
	b->how.reserve_cores = 0;
	assert_int_equal(plan_taken(b, 3, all, ""), 0);
	assert_disjoint(b);
	/* the node with the most cores per GPU */
	assert_string_equal(b->binds[1].cpus, "1-2");
	assert_string_equal(b->binds[2].cpus, "3-4");
	assert_non_null(strstr(b->binds[1].note, "unknown"));
	assert_null(b->binds[1].mem_nodes);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_full_node),
		T(test_jobs_beside_each_other_never_meet),
		T(test_taken_share_moves),
		T(test_smt_one_and_none),
		T(test_few_cores),
		T(test_nearest_node_with_cores),
		T(test_unknown_numa_spreads),
		T(test_gpu_order_is_not_numa_order),
		T(test_errors),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_what_is_unread_is_not_verified),
		cmocka_unit_test(test_judge_threads),
		T(test_near_memory),
		T(test_far_nic),
		T(test_quarters),
		T(test_partitions),
		T(test_one_core_and_one_unknown),
	};
	return cmocka_run_group_tests_name("acore/bind", tests, NULL, NULL);
}
