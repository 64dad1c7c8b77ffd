/* Engines that run one process per node: its binding, its words, its place in the job. */
#include <string.h>

#include "agent/core/bind/bind_launch.h"
#include "agent/core/bind/env.h"
#include "agent/core/text/words.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/unit/unit.h"

static void node_make(struct nodeinfo *info, struct launch *l)
{
	mo_desc_init(&nodeinfo_desc, info);
	mo_desc_init(&launch_desc, l);
	for (int i = 0; i < 2; i++) {
		struct numa_node *n = MO_ADD(info, numa, &numa_node_desc);

		n->id = i;
		n->cpus = mo_strdup(i ? "4-7" : "0-3");
		n->cores = mo_strdup(i ? "4;5;6;7" : "0;1;2;3");
		n->distances = mo_strdup(i ? "32 10" : "10 32");
	}
	for (int i = 0; i < 4; i++) {
		struct gpu_slot *g = MO_ADD(info, gpus, &gpu_slot_desc);

		g->index = i;
		g->numa_node = i / 2;
		g->vendor = mo_strdup("amd");
		mo_ints_add(&l->gpus, &l->n_gpus, i);
	}
	info->cpus = 8;
	l->job = 7;
	l->attempt = 2;
	l->first_rank = 1;
	l->n_local = 1;
	l->world = l->n_nodes = 2;
	l->node_rank = 1;
	l->job_gpus = 8;
	l->master_addr = mo_strdup("n0");
	l->master_port = 29500;
	l->bind.cpu = mo_strdup("numa");
	l->bind.memory = mo_strdup("preferred");
	l->bind.nic = mo_strdup("nearest");
	l->bind.smt = mo_strdup("auto");
	l->bind.verify = mo_strdup("strict");
	l->bind.reserve_cores = 0;
}

static void test_binding(void **state)
{
	struct nodeinfo info;
	struct launch l;
	struct rank_bind *binds = NULL;
	size_t n = 0;

	node_make(&info, &l);
	assert_int_equal(bind_launch(&info, &l, &l.bind, "", &binds, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(binds[0].cpus, "0-7");
	assert_int_equal(binds[0].n_cpus, 8);
	assert_int_equal(binds[0].numa_node, MO_NONE);
	assert_int_equal(binds[0].mem_policy, MEM_NONE);
	mo_vec_clear(&rank_bind_desc, (void **)&binds, &n);
	l.n_gpus = 2; /* both on one NUMA node: its memory is preferred */
	assert_int_equal(bind_launch(&info, &l, &l.bind, "", &binds, &n, NULL), 0);
	assert_string_equal(binds[0].cpus, "0-3");
	assert_int_equal(binds[0].numa_node, 0);
	assert_int_equal(binds[0].mem_policy, MEM_PREFERRED);
	mo_vec_clear(&rank_bind_desc, (void **)&binds, &n);
	l.n_local = 2; /* a rank for each */
	assert_int_equal(bind_launch(&info, &l, &l.bind, "", &binds, &n, NULL), 0);
	assert_int_equal(n, 2);
	mo_vec_clear(&rank_bind_desc, (void **)&binds, &n);
	l.n_gpus = 4;
	assert_int_equal(bind_launch(&info, &l, &l.bind, "", &binds, &n, NULL), -22);
	mo_desc_done(&launch_desc, &l);
	mo_desc_done(&nodeinfo_desc, &info);
}

static const char *value_of(const struct env_item *items, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(items[i].name, name))
			return items[i].value;
	return NULL;
}

static void add(struct launch *l, int layer, const char *name, const char *value)
{
	struct env_item *item = MO_ADD(l, env, &env_item_desc);

	item->layer = layer;
	item->name = mo_strdup(name);
	item->value = mo_strdup(value);
}

static void test_environment(void **state)
{
	static const char *const expected[][2] = {
		{ "RANK", "1" },
		{ "WORLD_SIZE", "2" },
		{ "LOCAL_RANK", "0" },
		{ "LOCAL_WORLD_SIZE", "1" },
		{ "NNODES", "2" },
		{ "NODE_RANK", "1" },
		{ "HIP_VISIBLE_DEVICES", "0,1,2,3" },
		{ "OMP_NUM_THREADS", "8" },
		{ "JAX_COORDINATOR_ADDRESS", "n0:29500" },
		{ "ALL", "1 0 2 1 4 7 2 /home/u" },
		{ "OTHER", "{x} {rank" },
		{ "RECIPE", "{rank}" },
	};
	const struct env_rank r = { .home = "/home/u",
				    .user = "u",
				    .shell = "/bin/sh",
				    .tmpdir = "/tmp",
				    .step_id = "s",
				    .notify_socket = "n",
				    .error_file = "e" };
	struct env_item *items = NULL;
	struct rank_bind *binds = NULL;
	size_t n = 0, n_binds = 0;
	struct nodeinfo info;
	struct launch l;

	node_make(&info, &l);
	add(&l, ENV_ENGINE, "JAX_COORDINATOR_ADDRESS", "{master_addr}:{master_port}");
	add(&l, ENV_ENGINE, "ALL",
	    "{rank} {local_rank} {world_size} {local_world_size} {local_gpus} {job} {attempt} "
	    "{workdir}");
	add(&l, ENV_ENGINE, "OTHER", "{x} {rank");
	add(&l, ENV_RECIPE, "RECIPE", "{rank}");
	assert_int_equal(bind_launch(&info, &l, &l.bind, "", &binds, &n_binds, NULL), 0);
	env_compose(&l, &info, &binds[0], &r, &items, &n);
	for (size_t i = 0; i < ELEMENTSOF(expected); i++)
		assert_string_equal(value_of(items, n, expected[i][0]), expected[i][1]);
	mo_vec_clear(&env_item_desc, (void **)&items, &n);
	mo_vec_clear(&rank_bind_desc, (void **)&binds, &n_binds);
	mo_desc_done(&launch_desc, &l);
	mo_desc_done(&nodeinfo_desc, &info);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_binding),
					    cmocka_unit_test(test_environment) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
