/* What an input costs grows with what it changes, not with how many nodes there are: passes over
 * nodes and jobs count whom they look at (core.looked). */
#include "tests/unit/dcore/world_inner.h"

#include <stdio.h>

#include "daemon/core/state/live.h"

#define FEW 4
#define MANY MAX_NODES

/* Of one beat of each of so many nodes, and of the ticks between them. */
static int64_t beats(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_run(&w, 3 * S);
	before = w.core->looked;
	world_run(&w, 5 * S);
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void beats_look_at_nobody_else(void **state)
{
	assert_int_equal(beats(FEW), 0);
	assert_int_equal(beats(MANY), 0);
}

/* The agents of all of them begin anew. */
static int64_t hellos(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_run(&w, 3 * S);
	before = w.core->looked;
	for (size_t i = 0; i < n; i++) {
		snprintf(w.toys[i].instance, sizeof(w.toys[i].instance), "again-%zu", i);
		w.toys[i].beat = 0;
		world_hello(&w, i);
		world_beat(&w, i);
		assert_string_equal(world_node(&w, i)->agent.instance, w.toys[i].instance);
	}
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void hellos_look_at_nobody_else(void **state)
{
	assert_int_equal(hellos(FEW), 0);
	assert_int_equal(hellos(MANY), 0);
}

/* One of them: twice, as it becomes suspect, and down. */
static int64_t silence(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_run(&w, 3 * S);
	before = w.core->looked;
	w.toys[1].deaf = true;
	world_run(&w, 20 * S);
	assert_int_equal(world_node(&w, 1)->state, NODE_DOWN);
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void silence_looks_at_who_is_silent(void **state)
{
	assert_int_equal(silence(FEW), 2);
	assert_int_equal(silence(MANY), 2);
}

/* A submit behind a job that waits for busy GPUs. */
static int64_t submit_behind(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_submit_running(&w, 1, 0);
	world_submit_gpus(&w, (int64_t)n);
	before = w.core->looked;
	assert_int_equal(world_job(&w, world_submit_gpus(&w, 1))->state, JOB_QUEUED);
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void submits_behind_others_look_at_themselves(void **state)
{
	assert_int_equal(submit_behind(FEW), 1);
	assert_int_equal(submit_behind(MANY), 1);
}

/* A submit with a name and a directory of its own behind so many that wait with theirs. */
static int64_t submit_behind_jobs(int n)
{
	struct world w;
	int64_t before = 0;

	world_init(&w, FEW, 1);
	world_submit_running(&w, 1, 0);
	world_submit_gpus(&w, FEW);
	for (int i = 0; i <= n; i++) {
		struct submit spec;

		world_recipe(&spec, 1);
		_cleanup_(mo_freep) char *name = mo_printf("job-%d", i),
					 *dir = mo_printf("/ckpt/%s", name);

		mo_str_set(&spec.recipe.name, name);
		mo_str_set(&spec.recipe.checkpoint.dir, dir);
		before = w.core->looked;
		assert_int_equal(world_job(&w, world_submit(&w, &spec))->state, JOB_QUEUED);
		mo_desc_done(&submit_desc, &spec);
	}
	before = w.core->looked - before;
	world_done(&w);
	return before;
}

static void submits_look_at_no_other_name_and_directory(void **state)
{
	assert_int_equal(submit_behind_jobs(1), 1);
	assert_int_equal(submit_behind_jobs(200), 1);
}

/* Of a turn in which an operator drains each of them while a job waits. */
static int64_t passes_of_drains(size_t n)
{
	struct world w;
	struct core_out out = { 0 };
	int64_t before;

	world_init(&w, n, 1);
	world_submit_gpus(&w, (int64_t)n + 1);
	before = w.core->passes;
	for (size_t i = 0; i < n; i++)
		core_decide(w.core,
			    &(struct core_input){
				    .type = IN_DRAIN,
				    .by = { .may_all = true },
				    .drain = &(struct in_drain){ .node = w.toys[i].name } },
			    w.now, &out);
	core_settle(w.core, w.now, &out);
	before = w.core->passes - before;
	for (size_t i = 0; i < n; i++)
		assert_true(world_node(&w, i)->drain.done);
	core_out_done(&out);
	world_done(&w);
	return before;
}

static void queue_is_judged_once_for_a_turn(void **state)
{
	assert_int_equal(passes_of_drains(FEW), 1);
	assert_int_equal(passes_of_drains(MANY), 1);
}

/* Of the agents of all of them that begin anew, as after an upgrade, while a job waits. */
static int64_t passes_of_new_agents(size_t n)
{
	struct world w;
	int64_t before;

	world_init(&w, n, 1);
	world_submit_gpus(&w, (int64_t)n + 1);
	world_run(&w, S);
	before = w.core->passes;
	for (size_t i = 0; i < n; i++) {
		snprintf(w.toys[i].instance, sizeof(w.toys[i].instance), "again-%zu", i);
		w.toys[i].beat = 0;
		world_hello(&w, i);
		world_beat(&w, i);
		assert_string_equal(world_node(&w, i)->agent.instance, w.toys[i].instance);
	}
	before = w.core->passes - before;
	world_done(&w);
	return before;
}

static void a_new_agent_alone_has_no_queue_judged(void **state)
{
	assert_int_equal(passes_of_new_agents(FEW), 0);
	assert_int_equal(passes_of_new_agents(MANY), 0);
}

/* Whoever may read can ask for them as often as he likes: they are there. */
static void figures_of_the_cluster_look_at_nobody(void **state)
{
	struct cluster_view v;
	struct world w;

	world_init(&w, FEW, 2);
	world_submit_running(&w, 1, 0);
	assert_int_equal(w.core->tally.n_stale, 0);
	w.core->tally.free = 41; /* a sum that no pass over the nodes would find */
	mo_desc_init(&cluster_view_desc, &v);
	cluster_view(core_state(w.core), "0.1", &v);
	assert_int_equal(v.gpus.total, 2 * FEW);
	assert_int_equal(v.gpus.free, 41);
	assert_int_equal(v.nodes.up, FEW);
	assert_int_equal(v.jobs[JOB_RUNNING], 1);
	mo_desc_done(&cluster_view_desc, &v);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beats_look_at_nobody_else),
		cmocka_unit_test(hellos_look_at_nobody_else),
		cmocka_unit_test(silence_looks_at_who_is_silent),
		cmocka_unit_test(submits_behind_others_look_at_themselves),
		cmocka_unit_test(submits_look_at_no_other_name_and_directory),
		cmocka_unit_test(queue_is_judged_once_for_a_turn),
		cmocka_unit_test(a_new_agent_alone_has_no_queue_judged),
		cmocka_unit_test(figures_of_the_cluster_look_at_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
