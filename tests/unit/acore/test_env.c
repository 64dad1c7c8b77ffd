/* The environment of a rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/bind/env.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

struct bed {
	struct launch launch;
	struct nodeinfo info;
	struct rank_bind bind;
	struct env_rank rank;
	struct env_item *items;
	size_t n;
};

static void layer(struct bed *b, int which, const char *name, const char *value)
{
	struct env_item *i = MO_ADD(&b->launch, env, &env_item_desc);

	i->layer = which;
	i->name = mo_strdup(name);
	i->value = mo_strdup(value);
	i->reason = mo_strdup("because");
	i->source = mo_strdup("file");
}

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));
	struct launch *l = &b->launch;

	mo_desc_init(&launch_desc, l);
	mo_desc_init(&nodeinfo_desc, &b->info);
	mo_desc_init(&rank_bind_desc, &b->bind);
	l->job = 7;
	l->attempt = 3;
	l->first_rank = 8;
	l->n_local = 2;
	l->world = 16;
	l->node_rank = 4;
	l->n_nodes = 8;
	l->master_port = 20004;
	l->master_addr = mo_strdup("10.0.0.1");
	l->checkpoint_dir = mo_strdup("/ckpt");
	l->resume = 40;
	mo_ints_add(&l->gpus, &l->n_gpus, 2);
	mo_ints_add(&l->gpus, &l->n_gpus, 3);
	for (int i = 0; i < 4; i++) {
		struct gpu_slot *g = MO_ADD(&b->info, gpus, &gpu_slot_desc);
		g->index = i;
		g->vendor = mo_strdup("amd");
	}
	b->bind.n_cpus = 12;
	b->rank = (struct env_rank){ .local_rank = 1,
				     .step_id = "j7.a3.n1.00",
				     .notify_socket = "/run/n",
				     .error_file = "/run/e",
				     .home = "/home/u",
				     .user = "u",
				     .shell = "/bin/sh",
				     .tmpdir = "/tmp",
				     .recorder_dir = "/run/r" };
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	mo_desc_done(&launch_desc, &b->launch);
	mo_desc_done(&nodeinfo_desc, &b->info);
	mo_desc_done(&rank_bind_desc, &b->bind);
	free(b);
	return 0;
}

static void compose(struct bed *b)
{
	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	env_compose(&b->launch, &b->info, &b->bind, &b->rank, &b->items, &b->n);
}

static const struct env_item *item(struct bed *b, const char *name)
{
	const struct env_item *found = NULL;

	for (size_t i = 0; i < b->n; i++)
		if (mo_streq(b->items[i].name, name)) {
			assert_null(found);
			found = &b->items[i];
		}
	return found;
}

static void has(struct bed *b, const char *name, const char *value)
{
	const struct env_item *i = item(b, name);

	if (!i)
		fail_msg("%s is missing", name);
	assert_string_equal(i->value, value);
}

static void own(struct bed *b, const char *name, const char *value)
{
	struct env_item *i = MO_ADD(&b->launch, env, &env_item_desc);

	i->name = mo_strdup(name);
	i->value = mo_strdup(value);
	i->layer = ENV_RECIPE;
}

/* Only who says how much it keeps has it asked, and who names places of his own has not. */
static void test_the_flight_recorder_is_asked_of_who_has_one(void **state)
{
	struct bed *b = *state;

	compose(b);
	assert_null(item(b, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
	assert_null(item(b, "TORCH_FR_DUMP_TEMP_FILE"));
	assert_null(item(b, "TORCH_NCCL_EXTRA_DUMP_ON_EXEC"));
	own(b, "TORCH_FR_BUFFER_SIZE", "0");
	compose(b);
	assert_null(item(b, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
	own(b, "TORCH_NCCL_TRACE_BUFFER_SIZE", "20000");
	compose(b);
	has(b, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/run/r/rank");
	has(b, "TORCH_FR_DUMP_TEMP_FILE", "/run/r/dump");
	has(b, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/run/r/dump");
	has(b, "TORCH_NCCL_EXTRA_DUMP_ON_EXEC", "0");
	has(b, "TORCH_NCCL_TRACE_BUFFER_SIZE", "20000");
	assert_string_equal(item(b, "TORCH_FR_DUMP_TEMP_FILE")->source, "node");
	own(b, "TORCH_FR_DUMP_TEMP_FILE", "/home/u/dump");
	compose(b);
	has(b, "TORCH_FR_DUMP_TEMP_FILE", "/home/u/dump");
	assert_null(item(b, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"));
	assert_null(item(b, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"));
}

static void test_what_a_rank_gets(void **state)
{
	struct bed *b = *state;

	compose(b);
	has(b, "RANK", "9");
	has(b, "WORLD_SIZE", "16");
	has(b, "LOCAL_RANK", "1");
	has(b, "LOCAL_WORLD_SIZE", "2");
	has(b, "GROUP_RANK", "4");
	has(b, "GROUP_WORLD_SIZE", "8");
	has(b, "ROLE_RANK", "9");
	has(b, "ROLE_WORLD_SIZE", "16");
	has(b, "NODE_RANK", "4");
	has(b, "NNODES", "8");
	has(b, "MASTER_ADDR", "10.0.0.1");
	has(b, "MASTER_PORT", "20004");
	has(b, "TORCHELASTIC_RUN_ID", "j-7");
	has(b, "TORCHELASTIC_RESTART_COUNT", "2");
	has(b, "TORCHELASTIC_ERROR_FILE", "/run/e");
	has(b, "OMP_NUM_THREADS", "12");
	has(b, "HIP_VISIBLE_DEVICES", "2,3");
	has(b, "MOE_JOB", "j-7");
	has(b, "MOE_ATTEMPT", "3");
	has(b, "MOE_STEP", "j7.a3.n1.00");
	has(b, "MOE_NOTIFY_SOCKET", "/run/n");
	has(b, "MOE_CHECKPOINT_DIR", "/ckpt");
	has(b, "MOE_RESUME_ITERATION", "40");
	has(b, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	has(b, "HOME", "/home/u");
	has(b, "USER", "u");
	has(b, "LOGNAME", "u");
	has(b, "SHELL", "/bin/sh");
	has(b, "LANG", "C.UTF-8");
	has(b, "TMPDIR", "/tmp");
	has(b, "PYTHONUNBUFFERED", "1");
	assert_int_equal(b->n, 31); /* and nothing else */
	for (size_t i = 0; i < b->n; i++) {
		assert_non_null(b->items[i].reason);
		assert_non_null(b->items[i].source);
		assert_null(b->items[i].overrides);
	}
}

static void test_visibility(void **state)
{
	struct bed *b = *state;

	layer(b, ENV_RECIPE, "ROCR_VISIBLE_DEVICES", "0");
	layer(b, ENV_PROFILE, "CUDA_VISIBLE_DEVICES", "0");
	compose(b);
	assert_null(item(b, "ROCR_VISIBLE_DEVICES"));
	assert_null(item(b, "CUDA_VISIBLE_DEVICES"));
	for (size_t i = 0; i < 4; i++)
		mo_str_set(&b->info.gpus[i].vendor, "nvidia");
	compose(b);
	has(b, "CUDA_VISIBLE_DEVICES", "2,3");
	assert_null(item(b, "HIP_VISIBLE_DEVICES"));
	for (size_t i = 0; i < 4; i++)
		mo_str_set(&b->info.gpus[i].vendor, "fake");
	compose(b);
	assert_null(item(b, "CUDA_VISIBLE_DEVICES"));
	assert_null(item(b, "HIP_VISIBLE_DEVICES"));
}

static void test_precedence(void **state)
{
	struct bed *b = *state;

	layer(b, ENV_RECIPE, "X", "recipe"); /* in any order */
	layer(b, ENV_BASE, "X", "base");
	layer(b, ENV_ENGINE, "X", "engine");
	layer(b, ENV_PROFILE, "Y", "profile");
	layer(b, ENV_FEATURE, "Y", "feature");
	layer(b, ENV_RECIPE, "OMP_NUM_THREADS", "4");
	layer(b, ENV_RECIPE, "RANK", "0");
	layer(b, ENV_RECIPE, "MOE_STEP", "x");
	layer(b, ENV_BASE, "PATH", "/opt/bin");
	layer(b, ENV_BASE, "API_KEY", "hush");
	layer(b, ENV_RECIPE, "API_KEY", "hush2");
	compose(b);
	has(b, "X", "recipe");
	assert_string_equal(item(b, "X")->overrides, "engine (engine)");
	assert_int_equal(item(b, "X")->layer, ENV_RECIPE);
	has(b, "Y", "feature");
	assert_string_equal(item(b, "Y")->overrides, "profile (profile)");
	has(b, "OMP_NUM_THREADS", "4");
	assert_string_equal(item(b, "OMP_NUM_THREADS")->overrides, "12 (base)");
	has(b, "RANK", "9");
	assert_null(item(b, "RANK")->overrides);
	has(b, "MOE_STEP", "j7.a3.n1.00");
	has(b, "PATH", "/opt/bin");
	has(b, "API_KEY", "hush2");
	assert_string_equal(item(b, "API_KEY")->overrides, "*** (base)");
}

/* What the image says is below everything; lists keep its part, and its PATH is its own. */
static void test_image(void **state)
{
	struct bed *b = *state;

	layer(b, ENV_BASE, "PATH", "/usr/bin");
	layer(b, ENV_IMAGE, "PATH", "/opt/venv/bin:/bin");
	layer(b, ENV_IMAGE, "LD_LIBRARY_PATH", "/opt/rocm/lib");
	layer(b, ENV_PROFILE, "LD_LIBRARY_PATH", "/site");
	layer(b, ENV_RECIPE, "LD_LIBRARY_PATH", "/mine");
	layer(b, ENV_IMAGE, "PYTHONPATH", "/opt/primus");
	layer(b, ENV_IMAGE, "HOME", "/root");
	layer(b, ENV_IMAGE, "RANK", "5");
	layer(b, ENV_IMAGE, "OWN", "1");
	compose(b);
	assert_null(item(b, "OWN")); /* without an image nobody speaks for one */
	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	b->launch.container = mo_desc_new(&recipe_container_desc);
	compose(b);
	has(b, "PATH", "/opt/venv/bin:/bin");
	has(b, "LD_LIBRARY_PATH", "/mine:/opt/rocm/lib");
	assert_string_equal(item(b, "LD_LIBRARY_PATH")->overrides, "/site (profile)");
	has(b, "PYTHONPATH", "/opt/primus");
	assert_int_equal(item(b, "PYTHONPATH")->layer, ENV_IMAGE);
	has(b, "HOME", "/home/u");
	assert_string_equal(item(b, "HOME")->overrides, "/root (image)");
	has(b, "RANK", "9");
	has(b, "OWN", "1");
	layer(b, ENV_RECIPE, "PATH", "/asked");
	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	compose(b);
	has(b, "PATH", "/asked");
}

static void test_file_items_stay_unread(void **state)
{
	struct bed *b = *state;
	struct env_item *i = MO_ADD(&b->launch, env, &env_item_desc);

	i->layer = ENV_RECIPE;
	i->name = mo_strdup("HF_TOKEN");
	i->file = mo_strdup("/secrets/hf");
	compose(b);
	assert_null(item(b, "HF_TOKEN")->value);
	assert_string_equal(item(b, "HF_TOKEN")->file, "/secrets/hf");
}

static void test_fresh_start_and_absent_things(void **state)
{
	struct bed *b = *state;

	b->launch.resume = -1;
	mo_str_set(&b->launch.checkpoint_dir, NULL);
	b->rank.tmpdir = NULL;
	b->bind.n_cpus = MO_NONE;
	compose(b);
	has(b, "MOE_RESUME_ITERATION", "-1");
	assert_null(item(b, "MOE_CHECKPOINT_DIR"));
	assert_null(item(b, "TMPDIR"));
	has(b, "OMP_NUM_THREADS", "1");
}

static void test_names(void **state)
{
	assert_true(env_is_launch_name("RANK") && env_is_launch_name("MOE_JOB") &&
		    env_is_launch_name("HIP_VISIBLE_DEVICES"));
	assert_false(env_is_launch_name("RANKS") || env_is_launch_name("OMP_NUM_THREADS") ||
		     env_is_launch_name(""));
}

/* The runtime finds the GPUs of this step only, and counts them from 0. */
static void test_numbers_behind_walls(void **state)
{
	struct bed *b = *state;

	for (size_t i = 0; i < b->info.n_gpus; i++)
		b->info.gpus[i].render_minor = 128 + (int64_t)i;
	b->info.walls = true;
	compose(b);
	has(b, "HIP_VISIBLE_DEVICES", "0,1");
	assert_non_null(strstr(item(b, "HIP_VISIBLE_DEVICES")->reason, "count from 0"));
	b->launch.gpus[0] = 3;
	b->launch.gpus[1] = 1;
	compose(b);
	has(b, "HIP_VISIBLE_DEVICES", "1,0");
	b->info.gpus[3].render_minor = MO_NONE;
	compose(b);
	has(b, "HIP_VISIBLE_DEVICES", "3,1");
	assert_null(strstr(item(b, "HIP_VISIBLE_DEVICES")->reason, "count from 0"));
}

/* The second rank's environment as its difference from the first's says it: as composed whole.
 * Returns how many items differ. */
static size_t next_is_whole(struct bed *b, int64_t cpus_of_second)
{
	struct rank_bind second = b->bind;
	struct env_rank first_rank = b->rank, second_rank = b->rank;
	struct env_item *first = NULL, *own = NULL;
	size_t n_first = 0, n_own = 0, n_used = 0;

	second.n_cpus = cpus_of_second;
	first_rank.local_rank = 0;
	second_rank.local_rank = 1;
	second_rank.notify_socket = "/run/n.1";
	second_rank.error_file = "/run/e.1";
	env_compose(&b->launch, &b->info, &b->bind, &first_rank, &first, &n_first);
	const struct env_first from = { first, n_first, &b->bind };

	env_compose_next(&b->launch, &b->info, &from, &second, &second_rank, &own, &n_own);
	mo_vec_clear(&env_item_desc, (void **)&b->items, &b->n);
	env_compose(&b->launch, &b->info, &second, &second_rank, &b->items, &b->n);
	assert_int_equal(b->n, n_first);
	for (size_t i = 0; i < n_first; i++) {
		const struct env_item *want = &first[i];

		for (size_t k = 0; k < n_own; k++)
			if (mo_streq(own[k].name, want->name)) {
				want = &own[k];
				n_used++;
			}
		assert_true(mo_desc_equal(&env_item_desc, want, &b->items[i]));
	}
	assert_int_equal(n_used, n_own);
	mo_vec_clear(&env_item_desc, (void **)&first, &n_first);
	mo_vec_clear(&env_item_desc, (void **)&own, &n_own);
	return n_used;
}

/* However many variables there are, what is made for a rank more are its own names. */
static void test_a_rank_more_is_what_differs(void **state)
{
	struct bed *b = *state;
	char name[16];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		layer(b, ENV_ENGINE, name, "{node_rank}");
	}
	assert_int_equal(next_is_whole(b, 12), 5);
	assert_int_equal(next_is_whole(b, 11), 6);
	layer(b, ENV_RECIPE, "OMP_NUM_THREADS", "4");
	assert_int_equal(next_is_whole(b, 12), 5);
	assert_int_equal(next_is_whole(b, 11), 6); /* another one is overridden */
	layer(b, ENV_ENGINE, "SLURM_PROCID", "{rank}");
	layer(b, ENV_ENGINE, "SLURM_LOCALID", "{local_rank}");
	assert_int_equal(next_is_whole(b, 12), 7);
	layer(b, ENV_RECIPE, "SLURM_PROCID", "none"); /* it overrides what differs */
	assert_int_equal(next_is_whole(b, 12), 7);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_what_a_rank_gets),
		T(test_the_flight_recorder_is_asked_of_who_has_one),
		T(test_visibility),
		T(test_numbers_behind_walls),
		T(test_a_rank_more_is_what_differs),
		T(test_precedence),
		T(test_image),
		T(test_file_items_stay_unread),
		T(test_fresh_start_and_absent_things),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests_name("acore/env", tests, NULL, NULL);
}
