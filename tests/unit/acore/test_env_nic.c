/* Network variables from a node's devices, the record of a step's environments, and why a rank is
 * bound as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/bind/env_nic.h"
#include "agent/core/bind/env_record.h"
#include "agent/core/bind/explain.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

struct bed {
	struct launch launch;
	struct nodeinfo info;
	struct env_item *items;
	size_t n;
};

static void nic(struct bed *b, const char *name, const char *link_layer, int64_t gid,
		const char *state)
{
	struct nic_info *n = MO_ADD(&b->info, nics, &nic_info_desc);

	n->name = mo_strdup(name);
	n->port = 1;
	n->link_layer = mo_strdup(link_layer);
	n->gid_index = gid;
	n->state = mo_strdup(state);
}

static void gpu(struct bed *b, const char *nic_name, int64_t numa)
{
	struct gpu_slot *g = MO_ADD(&b->info, gpus, &gpu_slot_desc);

	g->index = (int64_t)b->info.n_gpus - 1;
	g->nic = mo_strdup(nic_name);
	g->numa_node = numa;
	g->bdf = mo_printf("0000:0%zu:00.0", b->info.n_gpus);
}

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&launch_desc, &b->launch);
	mo_desc_init(&nodeinfo_desc, &b->info);
	b->launch.n_nodes = 1;
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	mo_desc_done(&launch_desc, &b->launch);
	mo_desc_done(&nodeinfo_desc, &b->info);
	free(b);
	return 0;
}

static const struct env_item *find(const struct env_item *items, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(items[i].name, name))
			return &items[i];
	return NULL;
}

static const struct env_item *run(struct bed *b, struct env_item *gid, const char *ifname,
				  const char *name)
{
	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	env_nics(&b->launch, &b->info, gid, ifname, &b->items, &b->n);
	return find(b->items, b->n, name);
}

static void test_hca_list(void **state)
{
	struct bed *b = *state;

	assert_null(run(b, NULL, NULL, "NCCL_IB_HCA"));
	gpu(b, "mlx5_1", 0);
	gpu(b, "mlx5_0", 0);
	gpu(b, "mlx5_0", 0); /* two GPUs share a NIC */
	gpu(b, NULL, 0);
	nic(b, "mlx5_0", "Ethernet", 3, "ACTIVE");
	nic(b, "mlx5_1", "Ethernet", 3, "DOWN");
	nic(b, "mlx5_2", "Ethernet", 3, "ACTIVE"); /* storage: nobody's */
	for (int64_t i = 0; i < 4; i++)
		mo_ints_add(&b->launch.gpus, &b->launch.n_gpus, 3 - i);
	assert_string_equal(run(b, NULL, NULL, "NCCL_IB_HCA")->value, "mlx5_0:1,mlx5_1:1");
	assert_non_null(strstr(run(b, NULL, NULL, "NCCL_IB_HCA")->reason, "mlx5_1 is DOWN"));
	nic(b, "mlx5_10", "Ethernet", 3, "ACTIVE"); /* begins with mlx5_1 */
	assert_string_equal(run(b, NULL, NULL, "NCCL_IB_HCA")->value, "=mlx5_0:1,mlx5_1:1");
	b->info.nics[0].port = 2;
	assert_string_equal(run(b, NULL, NULL, "NCCL_IB_HCA")->value, "=mlx5_0:2,mlx5_1:1");
	mo_str_set(&b->launch.bind.nic, "none");
	assert_null(run(b, NULL, NULL, "NCCL_IB_HCA"));
}

static void test_gid(void **state)
{
	struct bed *b = *state;
	struct env_item profile = { .name = (char *)"NCCL_IB_GID_INDEX",
				    .value = (char *)"3",
				    .source = (char *)"env/amd.yaml" };

	gpu(b, "a0", 0);
	gpu(b, "a1", 0);
	nic(b, "a0", "Ethernet", 1, "ACTIVE");
	nic(b, "a1", "Ethernet", 1, "ACTIVE");
	mo_ints_add(&b->launch.gpus, &b->launch.n_gpus, 0);
	mo_ints_add(&b->launch.gpus, &b->launch.n_gpus, 1);
	const struct env_item *i = run(b, &profile, NULL, profile.name);
	assert_string_equal(i->value, "1");
	assert_non_null(strstr(i->reason, "env/amd.yaml says 3, which is not that on this node"));
	b->info.nics[0].gid_index = b->info.nics[1].gid_index = 3;
	/* confirmed: the profile's item stays */
	assert_null(run(b, &profile, NULL, profile.name));
	assert_non_null(
		strstr(profile.reason, "the lowest routable RoCE v2 GID of a0 and the others"));
	b->info.nics[1].gid_index = 5;
	i = run(b, &profile, NULL, profile.name);
	assert_true(i && !i->value && strstr(i->reason, "a0 and a1 differ"));
	b->info.nics[0].gid_index = b->info.nics[1].gid_index = MO_NONE;
	/* none seen: the profile's word */
	assert_null(run(b, &profile, NULL, profile.name));
	mo_str_set(&b->info.nics[0].link_layer, "InfiniBand");
	mo_str_set(&b->info.nics[1].link_layer, "InfiniBand");
	i = run(b, &profile, NULL, profile.name);
	assert_true(i && !i->value && strstr(i->reason, "InfiniBand"));
	free(profile.reason);
}

static void test_interface(void **state)
{
	struct bed *b = *state;

	b->launch.address = mo_strdup("10.1.2.3");
	assert_null(run(b, NULL, "eth1", "NCCL_SOCKET_IFNAME")); /* one node */
	b->launch.n_nodes = 2;
	assert_string_equal(run(b, NULL, "eth1", "NCCL_SOCKET_IFNAME")->value, "eth1");
	assert_string_equal(run(b, NULL, "eth1", "GLOO_SOCKET_IFNAME")->value, "eth1");
	assert_non_null(strstr(run(b, NULL, "eth1", "GLOO_SOCKET_IFNAME")->reason, "10.1.2.3"));
	assert_null(run(b, NULL, NULL, "GLOO_SOCKET_IFNAME"));
}

static void test_record(void **state)
{
	struct bed *b = *state;
	struct env_record rec;
	struct env_item same = { .name = (char *)"LANG", .value = (char *)"C" },
			key = { .name = (char *)"A_KEY", .value = (char *)"hush" };

	mo_desc_init(&env_record_desc, &rec);
	for (int64_t r = 4; r < 7; r++) {
		_cleanup_(mo_freep) char *text = mo_printf("%lld", (long long)r);
		struct env_item rank = { .name = (char *)"RANK", .value = text };
		const struct env_item items[] = { same, rank, key };
		env_record_add(&rec, r, items, 3);
	}
	assert_int_equal(rec.n_items, 3);
	assert_int_equal(rec.ranks[0].n_items, 0);
	assert_int_equal(rec.ranks[2].n_items, 1);
	assert_false(env_record_of(&rec, 7, &b->items, &b->n));
	assert_int_equal(b->n, 0);
	assert_true(env_record_of(&rec, 6, &b->items, &b->n));
	assert_int_equal(b->n, 3);
	assert_string_equal(find(b->items, b->n, "RANK")->value, "6");
	assert_string_equal(find(b->items, b->n, "LANG")->value, "C");
	assert_string_equal(find(b->items, b->n, "A_KEY")->value, "***");
	mo_desc_done(&env_record_desc, &rec);
}

static bool says(const struct bind_view *v, const char *text)
{
	for (size_t i = 0; i < v->n_why; i++)
		if (strstr(v->why[i], text))
			return true;
	return false;
}

static void numa(struct bed *b, int64_t id, const char *cores, const char *l3)
{
	struct numa_node *n = MO_ADD(&b->info, numa, &numa_node_desc);

	n->id = id;
	n->cores = mo_strdup(cores);
	n->l3 = mo_strdup(l3);
}

static void test_explain_bind(void **state)
{
	struct bed *b = *state;
	struct recipe_bind how;
	struct bind_view *views = NULL;
	size_t n = 0;
	struct rank ranks[] = { { .rank = 8,
				  .node = (char *)"n",
				  .cpus = (char *)"2-4,10-12",
				  .numa_node = 0,
				  .gpu = 0,
				  .nic = (char *)"a0",
				  .bind_verified = 1 },
				{ .rank = 9,
				  .node = (char *)"n",
				  .cpus = NULL,
				  .numa_node = MO_NONE,
				  .gpu = 2,
				  .bind_verified = -1,
				  .bind_note = (char *)"later" },
				{ .rank = 10,
				  .node = (char *)"n",
				  .cpus = (char *)"0",
				  .numa_node = 0,
				  .gpu = 9,
				  .bind_verified = -1 } };

	mo_desc_init(&recipe_bind_desc, &how);
	how.reserve_cores = 2;
	gpu(b, "a0", 0);
	gpu(b, "a0", 0);
	gpu(b, NULL, 1);
	nic(b, "a0", "Ethernet", 1, "ACTIVE");
	b->info.nics[0].numa_node = 0;
	b->info.nics[0].bdf = mo_strdup("0000:09:00.0");
	numa(b, 0, "0,8;1,9;2,10;3,11;4,12;5,13;6,14;7,15", "0-3,8-11;4-7,12-15");
	numa(b, 1, "16;17;18", "16-18");
	bind_explain(&b->info, &how, ranks, 3, &views, &n);
	assert_int_equal(n, 3);
	const struct bind_view *v = &views[0];
	assert_int_equal(v->cores, 3);
	assert_int_equal(v->n_l3, 2);
	assert_string_equal(v->bdf, "0000:01:00.0");
	assert_int_equal(v->bind_verified, 1);
	assert_true(says(v, "GPU 0 (0000:01:00.0) is on NUMA node 0"));
	assert_true(says(v, "2 of the node's 8 usable cores stay with the system"));
	assert_true(says(v, "3 cores: the part of its GPU slot when the node's 8 are divided among "
			    "its 2 slots in whole cores along L3 caches, without those kept back"));
	assert_true(says(v, "1 of these slots is not this job's"));
	assert_true(says(v, "6 CPUs: all threads of each core"));
	assert_true(says(v, "a0 (0000:09:00.0) has the deepest PCI switch or root in common with "
			    "the GPU, on the same NUMA node"));
	assert_true(says(&views[1], "no CPUs are known")); /* not started yet */
	assert_true(says(&views[1], "is on NUMA node 1"));
	assert_false(says(&views[1], "no usable core"));
	assert_true(says(&views[1], "no NIC is paired"));
	assert_int_equal(views[1].cores, MO_NONE);
	assert_true(says(&views[2], "slot 9 is not among the node's GPUs now"));
	mo_vec_clear(&bind_view_desc, (void **)&views, &n);
	/* the slots exist: the plan tells the memory policy */
	bind_explain(&b->info, &how, ranks, 1, &views, &n);
	assert_string_equal(views[0].memory, "preferred 0");
	mo_vec_clear(&bind_view_desc, (void **)&views, &n);
	/* a node that is not known any more */
	bind_explain(NULL, &how, ranks, 1, &views, &n);
	assert_string_equal(views[0].cpus, "2-4,10-12");
	mo_vec_clear(&bind_view_desc, (void **)&views, &n);
	mo_desc_done(&recipe_bind_desc, &how);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = { T(test_hca_list), T(test_gid), T(test_interface),
					    T(test_record), T(test_explain_bind) };
	return cmocka_run_group_tests_name("acore/env_nic", tests, NULL, NULL);
}
