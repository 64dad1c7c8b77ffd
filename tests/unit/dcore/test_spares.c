/* Spare nodes of jobs: who gets them, when they are checked, and what becomes of them. */
#include "tests/unit/dcore/world.h"

#include "daemon/core/state/waiting.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/view_node.h"

#include <signal.h>
#include <string.h>

/* Of 2 GPUs a node, on whole nodes. */
static int64_t submit(struct world *w, int64_t gpus, int64_t spares, int64_t priority)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, gpus);
	spec.recipe.spares = spares;
	spec.recipe.priority = priority;
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	assert_true(id > 0);
	world_run(w, 2 * S);
	return id;
}

static int64_t spare_of(const struct world *w, size_t toy)
{
	return world_node(w, toy)->spare.job;
}

static bool checked(const struct world *w, size_t toy)
{
	return world_node(w, toy)->spare.passed;
}

static bool has(const struct world *w, int64_t id, const char *node)
{
	return place_of(world_job(w, id), node) != NULL;
}

static void a_free_node_is_kept_and_checked(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 3, 2);
	w.no_check = true;
	id = submit(&w, 4, 1, 50);
	assert_int_equal(spare_of(&w, 2), id);
	assert_false(checked(&w, 2));
	assert_int_equal(world_events(&w, "job.spare_kept"), 1);
	world_why_has(&w, id, "node n2: its checks are not done yet");
	world_crash(&w);
	assert_int_equal(spare_of(&w, 2), id);
	w.no_check = false;
	world_run(&w, 2 * S);
	assert_true(checked(&w, 2));
	assert_int_equal(world_events(&w, "job.spare_passed"), 1);
	assert_true(world_count(&w, 2, CMD_CHECK) > 0);
	assert_int_equal(world_count(&w, 1, CMD_CHECK), 0);
	world_why_has(&w, id, "1 of 1 spare nodes are kept for it");
	world_done(&w);
}

static void programs_of_doubt_are_run_there(void **state)
{
	struct world w;

	world_init_telling(&w, 3, 2);
	w.toys[2].doubts = true;
	submit(&w, 4, 1, 50);
	assert_true(w.toys[2].thorough);
	assert_true(checked(&w, 2));
	world_done(&w);
}

static void nobody_else_gets_it(void **state)
{
	struct world w;
	struct node_view v;
	struct cluster_view c;
	int64_t id, other;

	world_init(&w, 3, 2);
	id = submit(&w, 4, 1, 50);
	other = submit(&w, 2, 0, 90);
	assert_int_equal(world_job(&w, other)->state, JOB_QUEUED);
	world_waits(&w, other, WAITING_CAPACITY, "waits for 2 free GPUs",
		    "waits for 2 GPUs, 0 are free, 2 are kept as spares of other jobs");
	world_why_has(&w, other, "node n2 is kept as a spare of j-1");
	mo_desc_init(&node_view_desc, &v);
	node_view(core_state(w.core), world_node(&w, 2), w.now, false, &v);
	assert_int_equal(v.spare_of, id);
	assert_int_equal(v.gpus_free, 0);
	mo_desc_done(&node_view_desc, &v);
	mo_desc_init(&cluster_view_desc, &c);
	cluster_view(core_state(w.core), NULL, &c);
	assert_int_equal(c.gpus.free, 0);
	mo_desc_done(&cluster_view_desc, &c);
	/* until the job is over */
	world_verb(&w, IN_PAUSE, id);
	world_run(&w, 2 * S);
	assert_int_equal(spare_of(&w, 2), MO_NONE);
	assert_int_equal(world_job(&w, other)->run.n_places, 1);
	world_done(&w);
}

static void a_job_starts_without(void **state)
{
	struct world w;
	int64_t id, small;

	world_init(&w, 3, 2);
	small = submit(&w, 2, 0, 50);
	id = submit(&w, 4, 1, 50);
	assert_int_equal(world_job(&w, id)->run.n_places, 2);
	world_why_has(&w, id, "0 of 1 spare nodes are kept for it: no other whole node is free");
	/* one that is partly used is none */
	world_verb(&w, IN_CANCEL, small);
	world_run(&w, 2 * S);
	assert_int_equal(spare_of(&w, 0), id);
	world_done(&w);
}

/* Where the job would stand itself: behind those before it, before those behind it. */
static void a_spare_has_its_place_in_the_queue(void **state)
{
	struct world w;
	int64_t first, id, above, below;

	world_init(&w, 4, 2);
	first = submit(&w, 4, 0, 50);
	id = submit(&w, 2, 1, 50);
	assert_int_equal(spare_of(&w, 3), id);
	above = submit(&w, 2, 0, 60);
	below = submit(&w, 2, 0, 50);
	world_reboot(&w, 3);
	w.toys[3].deaf = true;
	world_run(&w, 15 * S);
	assert_int_equal(spare_of(&w, 3), MO_NONE);
	assert_int_equal(world_events(&w, "job.spare_left"), 1);
	world_verb(&w, IN_CANCEL, first);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, above)->run.n_places, 1);
	assert_int_equal(spare_of(&w, 0) == id || spare_of(&w, 1) == id, true);
	assert_int_equal(world_job(&w, below)->run.n_places, 0);
	world_done(&w);
}

static void a_large_job_does_not_starve(void **state)
{
	struct world w;
	int64_t small, id, large;

	world_init(&w, 3, 2);
	small = submit(&w, 2, 0, 50);
	id = submit(&w, 2, 1, 50);
	assert_int_equal(spare_of(&w, 2), id);
	world_node_verb(&w, IN_DRAIN, 2, "idle");
	large = submit(&w, 4, 0, 60);
	assert_int_equal(spare_of(&w, 2), MO_NONE);
	world_node_verb(&w, IN_UNDRAIN, 2, NULL);
	world_run(&w, 2 * S);
	assert_int_equal(spare_of(&w, 2), MO_NONE); /* the large job waits for it */
	world_verb(&w, IN_CANCEL, small);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, large)->run.n_places, 2);
	world_done(&w);
}

/* n1 breaks: n0 stays, the spare comes, although another node is free and comes first by name. */
static void a_broken_node_is_replaced_by_it(void **state)
{
	struct world w;
	int64_t id, small;

	world_init_telling(&w, 5, 2);
	small = submit(&w, 2, 0, 50);
	id = submit(&w, 4, 1, 50);
	assert_true(has(&w, id, "n1") && has(&w, id, "n2"));
	assert_int_equal(spare_of(&w, 3), id);
	world_verb(&w, IN_CANCEL, small);
	world_run(&w, 2 * S);
	world_iteration(&w, 1, id, 1);
	world_beat(&w, 1);
	w.toys[2].deaf = true;
	world_run(&w, 15 * S);
	world_node_verb(&w, IN_FENCE, 2, NULL);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_true(has(&w, id, "n1") && has(&w, id, "n3"));
	assert_int_equal(world_events(&w, "job.spare_used"), 1);
	/* and another one is kept */
	assert_int_equal(spare_of(&w, 3), MO_NONE);
	assert_int_equal(spare_of(&w, 0) == id || spare_of(&w, 4) == id, true);
	world_done(&w);
}

static void a_spare_that_is_found_broken_is_replaced(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 4, 2);
	id = submit(&w, 4, 1, 50);
	assert_int_equal(spare_of(&w, 2), id);
	world_finding(&w, 2, "gpu.ras_ue", CHECK_CRIT, ACTION_WARN);
	world_run(&w, 3 * S);
	assert_int_equal(spare_of(&w, 2), MO_NONE);
	assert_int_equal(spare_of(&w, 3), id);
	assert_true(checked(&w, 3));
	world_done(&w);
}

/* Where as many nodes are cordoned as may be, its own GPUs' word is enough. */
static void a_spare_that_computes_wrong_is_none(void **state)
{
	struct world w;
	int64_t id;

	world_init_telling(&w, 3, 2);
	id = submit(&w, 4, 1, 50);
	world_finding(&w, 2, "gpu.canary", CHECK_CRIT, ACTION_WARN);
	w.toys[2].health->results[0].when = WHEN_DOUBT;
	world_run(&w, 3 * S);
	assert_int_equal(spare_of(&w, 2), MO_NONE);
	assert_false(world_node(&w, 2)->drain.asked);
	assert_int_equal(world_job(&w, id)->run.n_places, 2);
	world_done(&w);
}

/* A beat that is late, and a controller that begins anew, prove nothing. */
static void a_moment_of_silence_keeps_it(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 3, 2);
	id = submit(&w, 4, 1, 50);
	w.toys[2].deaf = true;
	world_run(&w, 5 * S);
	assert_int_equal(world_node(&w, 2)->state, NODE_SUSPECT);
	assert_int_equal(spare_of(&w, 2), id);
	w.toys[2].deaf = false;
	world_crash(&w);
	assert_int_equal(spare_of(&w, 2), id);
	world_run(&w, 3 * S);
	assert_int_equal(spare_of(&w, 2), id);
	assert_int_equal(world_events(&w, "job.spare_left"), 0);
	world_done(&w);
}

static double sum_of(const struct report_seconds *g)
{
	return g->productive + g->image + g->launch + g->init + g->load + g->recompute + g->save +
	       g->hang + g->detect + g->drain + g->idle + g->spare;
}

static void its_gpu_time_is_the_jobs(void **state)
{
	struct world w;
	struct report_view v;
	int64_t id, since;

	world_init(&w, 3, 2);
	id = submit(&w, 4, 1, 50);
	since = world_node(&w, 2)->spare.since;
	world_run(&w, 60 * S);
	for (int round = 0; round < 2; round++) {
		int64_t end = round ? world_job(&w, id)->ended_at : w.now;

		mo_desc_init(&report_view_desc, &v);
		job_report(core_state(w.core), world_job(&w, id), w.now, &v);
		assert_true(v.gpu_seconds.spare == 2 * (double)(end - since) / 1e6);
		assert_true(v.gpu_seconds.spare > 100);
		assert_in_range((int64_t)(1e3 * v.gpu_seconds.total + 0.5),
				(int64_t)(1e3 * sum_of(&v.gpu_seconds)) - 1,
				(int64_t)(1e3 * sum_of(&v.gpu_seconds)) + 1);
		mo_desc_done(&report_view_desc, &v);
		world_verb(&w, IN_CANCEL, id);
		world_run(&w, 60 * S);
		assert_int_equal(spare_of(&w, 2), MO_NONE);
	}
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_node_is_kept_and_checked),
		cmocka_unit_test(programs_of_doubt_are_run_there),
		cmocka_unit_test(nobody_else_gets_it),
		cmocka_unit_test(a_job_starts_without),
		cmocka_unit_test(a_spare_has_its_place_in_the_queue),
		cmocka_unit_test(a_large_job_does_not_starve),
		cmocka_unit_test(a_broken_node_is_replaced_by_it),
		cmocka_unit_test(a_spare_that_is_found_broken_is_replaced),
		cmocka_unit_test(a_spare_that_computes_wrong_is_none),
		cmocka_unit_test(a_moment_of_silence_keeps_it),
		cmocka_unit_test(its_gpu_time_is_the_jobs),
	};

	return cmocka_run_group_tests_name("dcore/spares", tests, NULL, NULL);
}
