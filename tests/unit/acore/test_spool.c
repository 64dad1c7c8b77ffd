/* The spool entry that a launch becomes: who holds which CPUs, what the node grants, and what it
 * refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/agent/spool_make.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

static void test_taken(void **state)
{
	struct rank_bind one[] = { { .cpus = (char *)"1-3" }, { .cpus = NULL } };
	struct rank_bind two[] = { { .cpus = (char *)"3,7" } };
	struct rank_bind old[] = { { .cpus = (char *)"8-15" } };
	const struct neighbour others[] = {
		{ one, ELEMENTSOF(one), false },
		{ old, ELEMENTSOF(old), true },
		{ two, ELEMENTSOF(two), false },
		{ NULL, 0, false },
	};
	_cleanup_(mo_freep) char *all = spool_taken(others, ELEMENTSOF(others));
	_cleanup_(mo_freep) char *none = spool_taken(NULL, 0);

	assert_string_equal(all, "1-3,7");
	assert_string_equal(none, "");
}

struct bed {
	struct nodeinfo info;
	struct command command;
	struct node_terms terms;
	struct spool spool;
};

/* A node of eight cores and two GPUs; a launch of one rank on the first of them. */
static int setup(void **state)
{
	static const int64_t gpu = 0;
	struct bed *b = mo_alloc(sizeof(*b));
	struct numa_node *node;
	struct launch *l = mo_desc_new(&launch_desc);

	mo_desc_init(&nodeinfo_desc, &b->info);
	mo_desc_init(&command_desc, &b->command);
	mo_desc_init(&spool_desc, &b->spool);
	node = MO_ADD(&b->info, numa, &numa_node_desc);
	node->id = 0;
	node->cpus = mo_strdup("0-7");
	node->cores = mo_strdup("0;1;2;3;4;5;6;7");
	for (int64_t i = 0; i < 2; i++) {
		struct gpu_slot *g = MO_ADD(&b->info, gpus, &gpu_slot_desc);

		g->index = i;
		g->numa_node = 0;
	}
	l->job = 7;
	l->attempt = 2;
	l->n_local = l->world = 1;
	mo_ints_add(&l->gpus, &l->n_gpus, gpu);
	l->bind.reserve_cores = 0;
	b->command.epoch = 5;
	b->command.launch = l;
	b->terms = (struct node_terms){ .node = "n0",
					.boot_id = "b",
					.step_id = "j7.a2.n0.x",
					.log_dir = "/l",
					.tmpdir = "/t",
					.info = &b->info,
					.min_uid = 1000,
					.nofile = -1 };
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_desc_done(&spool_desc, &b->spool);
	mo_desc_done(&command_desc, &b->command);
	mo_desc_done(&nodeinfo_desc, &b->info);
	free(b);
	return 0;
}

static void make(struct bed *b, const struct neighbour *others, size_t n)
{
	mo_desc_done(&spool_desc, &b->spool);
	mo_desc_init(&spool_desc, &b->spool);
	spool_make(&b->command, &b->terms, others, n, &b->spool);
}

static const char *cpus(const struct bed *b)
{
	assert_null(b->spool.bind_error);
	assert_int_equal(b->spool.n_binds, 1);
	return b->spool.binds[0].cpus;
}

static void test_entry(void **state)
{
	struct bed *b = *state;

	make(b, NULL, 0);
	assert_string_equal(b->spool.step_id, "j7.a2.n0.x");
	assert_string_equal(b->spool.node, "n0");
	assert_int_equal(b->spool.epoch, 5);
	assert_int_equal(b->spool.launch.job, 7);
	assert_int_equal(b->spool.info.n_gpus, 2);
	assert_null(b->spool.cgroup);
	assert_int_equal(b->spool.min_uid, 1000);
	assert_int_equal(b->spool.nofile, -1);
	assert_string_equal(cpus(b), "0-3");
}

/* Root needs the word of both, the node's and the job's. */
static void test_root(void **state)
{
	struct bed *b = *state;

	for (int i = 0; i < 4; i++) {
		b->terms.allow_root = i & 1;
		b->command.launch->allow_root = i & 2;
		make(b, NULL, 0);
		assert_true(b->spool.allow_root == (i == 3));
	}
}

/* A step that has some of the node's GPUs gets their share, and never nothing. */
static void test_limits(void **state)
{
	struct bed *b = *state;

	b->terms.memory_bytes = b->terms.pids = -1;
	make(b, NULL, 0);
	assert_int_equal(b->spool.memory_bytes, -1);
	assert_int_equal(b->spool.pids, -1);
	b->terms.memory_bytes = INT64_MAX;
	b->terms.pids = 1;
	make(b, NULL, 0);
	assert_int_equal(b->spool.memory_bytes, INT64_MAX / 2);
	assert_int_equal(b->spool.pids, 1);
	b->terms.pids = 1001;
	make(b, NULL, 0);
	assert_int_equal(b->spool.pids, 500);
	mo_ints_add(&b->command.launch->gpus, &b->command.launch->n_gpus, 1);
	make(b, NULL, 0); /* one rank that has both */
	assert_int_equal(b->spool.memory_bytes, INT64_MAX);
	assert_int_equal(b->spool.pids, 1001);
	b->command.launch->n_local = 2;
	make(b, NULL, 0);
	assert_int_equal(b->spool.memory_bytes, INT64_MAX);
	assert_int_equal(b->spool.pids, 1001);
}

/* What another step holds is not given again, until no process of it is left. */
static void test_neighbours(void **state)
{
	struct bed *b = *state;
	struct rank_bind held = { .cpus = (char *)"1-2" };
	struct neighbour other = { &held, 1, false };

	make(b, &other, 1);
	assert_string_equal(cpus(b), "0,3");
	other.over = true;
	make(b, &other, 1);
	assert_string_equal(cpus(b), "0-3");
}

/* The larger of what the node and the recipe reserve. */
static void test_reserved(void **state)
{
	struct bed *b = *state;
	_cleanup_(mo_freep) char *by_node = NULL;

	b->terms.reserve_cores = 2;
	make(b, NULL, 0);
	by_node = mo_strdup(cpus(b));
	assert_string_not_equal(by_node, "0-3");
	b->terms.reserve_cores = 0;
	b->command.launch->bind.reserve_cores = 2;
	make(b, NULL, 0);
	assert_string_equal(cpus(b), by_node);
	b->terms.reserve_cores = 1;
	make(b, NULL, 0);
	assert_string_equal(cpus(b), by_node);
	/* the launch stays as it was ordered */
	assert_int_equal(b->spool.launch.bind.reserve_cores, 2);
}

/* The entry says it: its supervisor refuses the step with it. */
static void test_no_binding(void **state)
{
	struct bed *b = *state;

	b->command.launch->gpus[0] = 9;
	make(b, NULL, 0);
	assert_non_null(b->spool.bind_error);
	assert_non_null(strstr(b->spool.bind_error, "no binding on n0: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test_setup_teardown(test_entry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_root, setup, teardown),
		cmocka_unit_test_setup_teardown(test_neighbours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reserved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_binding, setup, teardown),
	};

	return cmocka_run_group_tests_name("acore/spool", tests, NULL, NULL);
}
