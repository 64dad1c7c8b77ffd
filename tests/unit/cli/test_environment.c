/* config/env through the whole way: recipe -> profiles -> launch order -> environment of a rank,
 * for nodes of each GPU generation and NIC family, and each variable on which launchers disagree
 * (docs/environment.md). */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/bind/preview.h"
#include "daemon/core/rules/launch.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/recipe_file.h"
#include "lib/recipe/env_layers.h"

struct machine {
	const char *vendor, *gpu, *nic, *family, *link_layer;
	int64_t gid;
};
struct bed {
	struct submit spec;
	struct job job;
	struct state state;
	struct launch launch;
	struct {
		struct dryrun_rank *ranks;
		size_t n_ranks;
	} dry;
};

static void add_machine(struct state *s, const char *name, const struct machine *m)
{
	struct node *n = MO_INSERT(s, nodes, s->n_nodes, &node_desc);
	struct numa_node *numa = MO_ADD(&n->info, numa, &numa_node_desc);

	n->name = mo_strdup(name);
	n->agent.address = mo_printf("10.0.0.%zu", s->n_nodes);
	numa->id = 0;
	numa->cpus = mo_strdup("0-33");
	for (int i = 0; i < 4; i++) {
		struct gpu_slot *g = MO_ADD(&n->info, gpus, &gpu_slot_desc);
		g->index = i;
		g->vendor = mo_strdup(m->vendor);
		g->model = mo_strdup(m->gpu);
		g->numa_node = 0;
		g->nic = m->nic ? mo_printf("%s%d", m->nic, i) : NULL;
	}
	for (int i = 4; m->nic && i-- > 0;) { /* the node's order is not that of its GPUs */
		struct nic_info *nic = MO_ADD(&n->info, nics, &nic_info_desc);
		nic->name = mo_printf("%s%d", m->nic, i);
		nic->family = mo_strdup(m->family);
		nic->port = 1;
		nic->state = mo_strdup("ACTIVE");
		nic->link_layer = mo_strdup(m->link_layer ? m->link_layer : "Ethernet");
		nic->gid_index = m->gid;
	}
}

/* The job's first two GPUs on each of n nodes like m. */
static void make(struct bed *b, const char *kind, const char *rest, const struct machine *m, int n)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("recipe: 1\nname: t\nengine: %s\ncluster: {gpus: %d}\n%s", kind, 2 * n,
			  rest);
	struct recipe_errors errors = { 0 };
	struct mo_error err = { 0 };

	mo_desc_init(&submit_desc, &b->spec);
	mo_desc_init(&job_desc, &b->job);
	mo_desc_init(&state_desc, &b->state);
	mo_desc_init(&launch_desc, &b->launch);
	b->dry.ranks = NULL;
	b->dry.n_ranks = 0;
	if (recipe_parse(text, strlen(text), NULL, 0, &b->job.spec.recipe, &b->job.spec.engine,
			 &b->job.spec.warnings, &b->job.spec.n_warnings, &errors) < 0)
		fail_msg("%s", errors.items[0].text);
	b->job.attempt = 1;
	b->job.id = 1;
	b->job.run.resume = -1;
	mo_strs_add(&b->job.spec.argv, &b->job.spec.n_argv, "x");
	for (int i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *name = mo_printf("n%d", i);
		struct place *p = MO_ADD(&b->job.run, places, &place_desc);
		add_machine(&b->state, name, m);
		p->node = mo_strdup(name);
		p->first_rank = 2 * i;
		p->n_ranks = 2;
		mo_ints_add(&p->gpus, &p->n_gpus, 0);
		mo_ints_add(&p->gpus, &p->n_gpus, 1);
	}
	env_layers(&b->job.spec.recipe, &b->job.spec.engine, &b->job.spec.env, &b->job.spec.n_env);
	if (env_profiles(&b->job.spec.recipe, &b->job.spec.profiles, &b->job.spec.n_profiles,
			 &err) < 0)
		fail_msg("%s", mo_error_text(&err, -1));
	launch_make(&b->state, &b->job, 0, &b->launch);
	if (preview_ranks("n0", &b->state.nodes[0]->info, &b->launch, &b->dry.ranks,
			  &b->dry.n_ranks, &err) < 0)
		fail_msg("%s", mo_error_text(&err, -1));
}

static void done(struct bed *b)
{
	mo_desc_done(&submit_desc, &b->spec);
	mo_desc_done(&job_desc, &b->job);
	mo_desc_done(&state_desc, &b->state);
	mo_desc_done(&launch_desc, &b->launch);
	mo_vec_clear(&dryrun_rank_desc, (void **)&b->dry.ranks, &b->dry.n_ranks);
}

static const struct env_item *item(const struct bed *b, size_t rank, const char *name)
{
	for (size_t i = 0; i < b->dry.ranks[rank].n_env; i++)
		if (mo_streq(b->dry.ranks[rank].env[i].name, name))
			return &b->dry.ranks[rank].env[i];
	return NULL;
}

#define NONE "(none)"
static void expect(const struct bed *b, const char *name, const char *value, const char *what)
{
	const struct env_item *e = item(b, 1, name);
	const char *have = e && e->value ? e->value : NONE;

	if (!mo_streq(have, value))
		fail_msg("%s: %s is '%s', not '%s'", what, name, have, value);
	if (e && (!e->reason || !e->source))
		fail_msg("%s: %s has no reason or source", what, name);
}

#define COMMAND "{kind: command, argv: [x]}"
static const struct machine mi250x = { "amd", "mi250x", NULL, NULL, NULL, MO_NONE },
			    mi300x = { "amd", "mi300x", "mlx5_", "mellanox", "Ethernet", 3 },
			    mi300x_ib = { "amd",      "mi300x",     "mlx5_",
					  "mellanox", "InfiniBand", MO_NONE },
			    mi325x = { "amd", "mi325x", "bnxt_re", "broadcom", "Ethernet", 3 },
			    mi355x = { "amd", "mi355x", "ionic_", "ainic", "Ethernet", 1 },
			    mi350x = { "amd", "mi350x", "ionic_", "ainic", "Ethernet", MO_NONE },
			    mi355x_mlx = { "amd", "mi355x", "mlx5_", "mellanox", "Ethernet", 5 },
			    h200 = { "nvidia", "h200", "mlx5_", "mellanox", "Ethernet", MO_NONE },
			    fake = { "fake", "fake", NULL, NULL, NULL, MO_NONE };

static void values_per_machine(void **state)
{
	static const struct {
		const struct machine *m;
		const char *name, *value;
	} rows[] = {
		{ &fake, "PYTHONUNBUFFERED", "1" },
		{ &fake, "HSA_KERNARG_POOL_SIZE", "12582912" },
		{ &fake, "HSA_NO_SCRATCH_RECLAIM", NONE },
		{ &fake, "NCCL_IB_HCA", NONE },
		{ &fake, "OMP_NUM_THREADS", "8" },
		{ &mi250x, "HSA_NO_SCRATCH_RECLAIM", "1" },
		{ &mi250x, "NVTE_ROCM_ENABLE_MXFP8", NONE },
		{ &mi250x, "NVTE_CK_USES_BWD_V3", "0" },
		{ &mi250x, "NCCL_IB_GID_INDEX", "3" },
		{ &mi300x, "HSA_NO_SCRATCH_RECLAIM", "1" },
		{ &mi300x, "GPU_MAX_HW_QUEUES", "2" },
		{ &mi300x, "CUDA_DEVICE_MAX_CONNECTIONS", "1" },
		{ &mi300x, "ENABLE_NUMA_BINDING", "0" },
		{ &mi300x, "HSA_ENABLE_SDMA", "1" },
		{ &mi300x, "NVTE_CK_USES_BWD_V3", "1" },
		{ &mi300x, "NVTE_ROCM_ENABLE_MXFP8", NONE },
		{ &mi300x, "RCCL_WARP_SPEED_AUTO", NONE },
		{ &mi300x, "NCCL_PXN_DISABLE", "1" },
		{ &mi300x, "NCCL_CROSS_NIC", "0" },
		{ &mi300x, "NCCL_IB_GID_INDEX", "3" },
		{ &mi300x, "RCCL_AINIC_ROCE", NONE },
		{ &mi300x, "NCCL_IB_HCA", "mlx5_1:1,mlx5_0:1" },
		{ &mi300x_ib, "NCCL_IB_GID_INDEX", NONE },
		{ &mi300x_ib, "NCCL_IB_HCA", "mlx5_1:1,mlx5_0:1" },
		{ &mi325x, "NCCL_PXN_DISABLE", "0" },
		{ &mi325x, "NCCL_CROSS_NIC", "1" },
		{ &mi325x, "NCCL_IB_GID_INDEX", "3" },
		{ &mi325x, "NVTE_CK_USES_BWD_V3", "1" },
		{ &mi355x, "NCCL_PXN_DISABLE", "0" },
		{ &mi355x, "NCCL_IB_GID_INDEX", "1" },
		{ &mi355x, "RCCL_AINIC_ROCE", "1" },
		{ &mi355x, "NCCL_IB_TC", "104" },
		{ &mi355x, "NCCL_IB_FIFO_TC", "192" },
		{ &mi355x, "NCCL_MAX_P2P_CHANNELS", "56" },
		{ &mi355x, "NCCL_IGNORE_CPU_AFFINITY", "0" },
		{ &mi355x, "NCCL_CROSS_NIC", "0" },
		{ &mi355x, "RCCL_WARP_SPEED_AUTO", "0" },
		{ &mi355x, "NVTE_ROCM_ENABLE_MXFP8", "1" },
		{ &mi355x, "NCCL_IB_HCA", "ionic_1:1,ionic_0:1" },
		{ &mi355x, "HSA_NO_SCRATCH_RECLAIM", "1" },
		{ &mi350x, "NCCL_IB_GID_INDEX", "1" },
		{ &mi350x, "RCCL_WARP_SPEED_AUTO", "0" },
		{ &mi355x_mlx, "NCCL_IB_GID_INDEX", "5" },
		{ &mi355x_mlx, "NCCL_PXN_DISABLE", "1" },
		{ &mi355x_mlx, "RCCL_AINIC_ROCE", NONE },
		{ &h200, "NCCL_NVLS_ENABLE", "0" },
		{ &h200, "HSA_NO_SCRATCH_RECLAIM", NONE },
		{ &h200, "ENABLE_NUMA_BINDING", NONE },
		{ &h200, "NCCL_IB_GID_INDEX", "3" },
		{ &h200, "CUDA_VISIBLE_DEVICES", "0,1" },
	};
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct bed b;
		make(&b, COMMAND, "", rows[i].m, 1);
		expect(&b, rows[i].name, rows[i].value, rows[i].m->gpu);
		done(&b);
	}
}

/* Each variable on which launch paths disagree: the value, and that the reason tells what others
 * do. */
static void conflicts_name_the_others(void **state)
{
	static const struct {
		const struct machine *m;
		const char *name, *value, *says;
	} rows[] = {
		{ &mi300x, "HSA_NO_SCRATCH_RECLAIM", "1",
		  "legacy run_pretrain.sh 0; MaxText 1 on gfx942 and unset on gfx950" },
		{ &mi300x, "NCCL_PXN_DISABLE", "1", "PR 728" },
		{ &mi355x, "NCCL_PXN_DISABLE", "0", "primus-cli 1" },
		{ &mi355x, "NCCL_IB_GID_INDEX", "1",
		  "on this node it is the lowest routable RoCE v2 GID of ionic_1 and the others" },
		{ &mi350x, "NCCL_IB_GID_INDEX", "1", "3 in primus-cli" },
		{ &mi300x, "ENABLE_NUMA_BINDING", "0", "does nothing without --numa" },
		{ &mi300x, "CUDA_DEVICE_MAX_CONNECTIONS", "1", "8 under FSDP" },
		{ &mi300x, "GPU_MAX_HW_QUEUES", "2", "4 in Primus' DeepSeek-V3" },
		{ &mi300x, "OMP_NUM_THREADS", "8", "torchrun says 1" },
		{ &mi355x_mlx, "NCCL_IB_GID_INDEX", "5",
		  "env/nic-mellanox.yaml: Primus base_env.sh says 3, which is not that on this "
		  "node" },
		{ &mi355x, "NCCL_IGNORE_CPU_AFFINITY", "0", "Primus 1" },
	};
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct bed b;
		make(&b, COMMAND, "", rows[i].m, 1);
		expect(&b, rows[i].name, rows[i].value, rows[i].m->gpu);
		const struct env_item *e = item(&b, 1, rows[i].name);
		if (!strstr(e->reason, rows[i].says))
			fail_msg("%s on %s: '%s' does not say '%s'", rows[i].name, rows[i].m->gpu,
				 e->reason, rows[i].says);
		done(&b);
	}
}

static void recipe_decides_features(void **state)
{
	struct bed b;

	make(&b, "{kind: torch, entry: t.py}", "parallelism: {sharding: zero3}\n", &mi300x, 1);
	expect(&b, "CUDA_DEVICE_MAX_CONNECTIONS", "8", "FSDP");
	assert_string_equal(item(&b, 1, "CUDA_DEVICE_MAX_CONNECTIONS")->overrides, "1 (profile)");
	assert_int_equal(item(&b, 1, "CUDA_DEVICE_MAX_CONNECTIONS")->layer, ENV_FEATURE);
	done(&b);
	make(&b, "{kind: torch, entry: t.py}", "parallelism: {sharding: zero1}\n", &mi300x, 1);
	expect(&b, "CUDA_DEVICE_MAX_CONNECTIONS", "1", "zero1");
	done(&b);
}

/* What no recipe may ask for yet is decided by the same data: recipes are made by hand here. */
static bool has_profile(const struct recipe *r, const char *name)
{
	struct env_profile *profiles = NULL;
	size_t n = 0;
	bool found = false;

	assert_int_equal(env_profiles(r, &profiles, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		found = found || mo_streq(profiles[i].name, name);
	mo_vec_clear(&env_profile_desc, (void **)&profiles, &n);
	return found;
}

static void engine_and_feature_conditions(void **state)
{
	struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	r.parallelism.pp = 1;
	assert_false(has_profile(&r, "maxtext-gfx950"));
	r.engine.kind = mo_strdup("maxtext");
	assert_true(has_profile(&r, "maxtext-gfx950"));
	struct kv *f = MO_ADD(&r, features, &kv_desc);
	f->key = mo_strdup("a2a");
	f->value = mo_strdup("deepep");
	assert_false(has_profile(&r, "deepep-pipeline"));
	r.parallelism.pp = 4;
	assert_true(has_profile(&r, "deepep-pipeline"));
	mo_str_set(&f->value, "alltoall");
	assert_false(has_profile(&r, "deepep-pipeline"));
	mo_desc_done(&recipe_desc, &r);
}

static void unset_where_maxtext_runs_on_gfx950(void **state)
{
	static const struct {
		const struct machine *m;
		const char *value;
	} rows[] = { { &mi355x, NONE }, { &mi300x, "1" } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct bed b;
		struct mo_error err = { 0 };
		make(&b, COMMAND, "", rows[i].m, 1);
		mo_str_set(&b.job.spec.recipe.engine.kind, "maxtext");
		mo_vec_clear(&env_profile_desc, (void **)&b.job.spec.profiles,
			     &b.job.spec.n_profiles);
		assert_int_equal(env_profiles(&b.job.spec.recipe, &b.job.spec.profiles,
					      &b.job.spec.n_profiles, &err),
				 0);
		mo_desc_done(&launch_desc, &b.launch);
		launch_make(&b.state, &b.job, 0, &b.launch);
		mo_vec_clear(&dryrun_rank_desc, (void **)&b.dry.ranks, &b.dry.n_ranks);
		assert_int_equal(preview_ranks("n0", &b.state.nodes[0]->info, &b.launch,
					       &b.dry.ranks, &b.dry.n_ranks, &err),
				 0);
		expect(&b, "HSA_NO_SCRATCH_RECLAIM", rows[i].value, rows[i].m->gpu);
		if (i == 0)
			assert_string_equal(item(&b, 1, "HSA_NO_SCRATCH_RECLAIM")->overrides,
					    "1 (profile)");
		done(&b);
	}
}

static void users_win_and_are_marked(void **state)
{
	static const char rest[] =
		"env: {NCCL_IB_GID_INDEX: 7, HSA_NO_SCRATCH_RECLAIM: 0, NCCL_IB_HCA: mlx5_9, "
		"HF_TOKEN: hush, MINE: m, HIP_FORCE_DEV_KERNARG: 1}\n";
	struct bed b;

	make(&b, COMMAND, rest, &mi300x, 1);
	expect(&b, "NCCL_IB_GID_INDEX", "7", "user");
	assert_string_equal(item(&b, 1, "NCCL_IB_GID_INDEX")->overrides, "3 (profile)");
	assert_string_equal(item(&b, 1, "NCCL_IB_GID_INDEX")->source,
			    "recipe: env.NCCL_IB_GID_INDEX");
	expect(&b, "HSA_NO_SCRATCH_RECLAIM", "0", "user");
	assert_string_equal(item(&b, 1, "NCCL_IB_HCA")->overrides, "mlx5_1:1,mlx5_0:1 (profile)");
	assert_string_equal(item(&b, 1, "HF_TOKEN")->value, "***");
	assert_null(item(&b, 1, "MINE")->overrides);
	assert_non_null(
		strstr(item(&b, 1, "HIP_FORCE_DEV_KERNARG")->reason, "12.0 MiB for each stream"));
	assert_non_null(strstr(item(&b, 1, "HSA_KERNARG_POOL_SIZE")->reason, "lies in VRAM"));
	done(&b);
	make(&b, COMMAND, "bind: {nic: none}\n", &mi300x, 1);
	expect(&b, "NCCL_IB_HCA", NONE, "bind.nic: none");
	done(&b);
}

/* A launch order carries what applies on its node and nothing of the other profiles. */
static void launch_carries_its_own_profiles(void **state)
{
	struct bed b;

	make(&b, COMMAND, "", &mi300x, 2);
	assert_string_equal(b.launch.address, "10.0.0.1");
	for (size_t i = 0; i < b.launch.n_env; i++)
		if (strstr(b.launch.env[i].source, "ainic") ||
		    strstr(b.launch.env[i].source, "gfx950") ||
		    strstr(b.launch.env[i].source, "nvidia"))
			fail_msg("%s: %s", b.launch.env[i].name, b.launch.env[i].source);
	done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_per_machine),
		cmocka_unit_test(conflicts_name_the_others),
		cmocka_unit_test(recipe_decides_features),
		cmocka_unit_test(engine_and_feature_conditions),
		cmocka_unit_test(unset_where_maxtext_runs_on_gfx950),
		cmocka_unit_test(users_win_and_are_marked),
		cmocka_unit_test(launch_carries_its_own_profiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
