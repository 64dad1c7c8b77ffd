/* Images that people want on nodes before a job needs them: who is asked when, within
 * pull_parallel, and that each order ends. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/rules/images.h"
#include "daemon/core/rules/prefetch.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* All nodes bring images; they say nothing of them yet. */
static void make(struct world *w, size_t nodes, int64_t parallel)
{
	world_init(w, nodes, 2);
	w->core->config.pull_parallel = parallel;
	for (size_t i = 0; i < nodes; i++) {
		mo_desc_init(&image_report_desc, &w->toys[i].image);
		w->toys[i].brings = true;
	}
	world_run(w, S);
}

/* The number of the order. */
static const struct prefetch *pull(struct world *w, char *nodes[], size_t n)
{
	world_step(w, &(struct core_input){
			      .type = IN_PREFETCH,
			      .request = 1,
			      .by = { .user = (char *)"ann" },
			      .prefetch = &(struct in_prefetch){
				      .image = (char *)"r/a:v1", .nodes = nodes, .n_nodes = n } });
	return w->reply_status == 202 ? prefetch_find(w->core, w->reply_job) : NULL;
}

static size_t ordered(const struct world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_toys; i++)
		n += w->toys[i].n_ordered > 0;
	return n;
}

static void it_knows(struct world *w, size_t toy, bool ready)
{
	w->toys[toy].image.digest = (char *)A;
	w->toys[toy].image.ready = ready;
}

static void the_first_says_which_one_it_is(void **state)
{
	struct world w;

	make(&w, 3, 32);
	const struct prefetch *p = pull(&w, NULL, 0);

	assert_non_null(p);
	assert_int_equal(p->n_nodes, 3);
	assert_true(world_event_seen(&w, "image.pulling"));
	world_run(&w, 3 * S);
	assert_int_equal(ordered(&w), 1);
	assert_string_equal(p->nodes[1].node, "n1");
	assert_int_equal(p->nodes[1].state, PREFETCH_WAITING);
	it_knows(&w, 0, false);
	world_run(&w, 3 * S);
	assert_int_equal(ordered(&w), 3);
	assert_string_equal(w.toys[2].ordered[0].digest, A);
	w.toys[0].image.done = 5;
	world_run(&w, S);
	assert_int_equal(p->nodes[0].done, 5);
	for (size_t i = 0; i < 3; i++)
		it_knows(&w, i, true);
	world_run(&w, 2 * S);
	assert_true(p->ended_at != MO_NONE);
	assert_string_equal(p->order.digest, A);
	assert_true(world_event_seen(&w, "image.ready"));
	world_run(&w, S);
	assert_int_equal(ordered(&w), 0); /* it is ordered no more */
	world_done(&w);
}

static void no_more_than_may_pull(void **state)
{
	struct world w;
	char *nodes[] = { (char *)"n1", (char *)"n3", (char *)"n1" };

	make(&w, 4, 1);
	const struct prefetch *p = pull(&w, nodes, ELEMENTSOF(nodes));

	assert_int_equal(p->n_nodes, 2);
	it_knows(&w, 1, false);
	world_run(&w, 5 * S);
	assert_int_equal(ordered(&w), 1);
	it_knows(&w, 1, true);
	it_knows(&w, 3, true);
	world_run(&w, 5 * S);
	assert_true(p->ended_at != MO_NONE);
	assert_int_equal(world_count(&w, 0, CMD_IMAGE) + world_count(&w, 2, CMD_IMAGE), 0);
	world_done(&w);
}

static void it_ends_where_a_node_cannot(void **state)
{
	struct world w;

	make(&w, 4, 32);
	w.toys[0].brings = false;
	world_run(&w, S);
	const struct prefetch *p = pull(&w, NULL, 0);

	/* the next one is asked what the name means */
	it_knows(&w, 1, true);
	w.toys[2].image.refused = true;
	w.toys[2].image.error = (char *)"it is too large";
	w.toys[3].image.error = (char *)"no answer";
	w.toys[3].image.tries = 2;
	world_run(&w, 3 * S);
	assert_int_equal(p->nodes[0].state, PREFETCH_FAILED);
	assert_non_null(strstr(p->nodes[0].error, "older version"));
	assert_int_equal(p->nodes[1].state, PREFETCH_READY);
	assert_int_equal(p->nodes[2].state, PREFETCH_FAILED);
	assert_int_equal(p->nodes[3].state, PREFETCH_BRINGING);
	assert_string_equal(p->nodes[3].error, "no answer");
	w.toys[3].image.tries = 3;
	world_run(&w, S);
	assert_true(p->ended_at != MO_NONE);
	assert_true(world_event_seen(&w, "image.failed"));
	assert_int_equal(world_count(&w, 0, CMD_IMAGE), 0);
	world_done(&w);
}

static void it_ends_with_its_time(void **state)
{
	struct world w;

	make(&w, 2, 32);
	const struct prefetch *p = pull(&w, NULL, 0);

	w.toys[1].deaf = true;
	world_run(&w, 60 * S);
	assert_int_equal(p->nodes[1].state, PREFETCH_FAILED);
	assert_string_equal(p->nodes[1].error, "the node is down");
	assert_int_equal(p->nodes[0].state, PREFETCH_BRINGING);
	w.now = p->until;
	world_run(&w, 2 * S);
	assert_true(p->ended_at != MO_NONE);
	assert_string_equal(p->nodes[0].error, "it was not there within 12 h");
	world_done(&w);
}

static void what_is_refused(void **state)
{
	struct world w;
	char *nodes[] = { (char *)"none" };

	make(&w, 1, 32);
	assert_null(pull(&w, nodes, 1));
	assert_int_equal(w.reply_status, 404);
	for (int i = 0; i < 16; i++)
		assert_non_null(pull(&w, NULL, 0));
	assert_null(pull(&w, NULL, 0));
	assert_int_equal(w.reply_status, 429);
	it_knows(&w, 0, true);
	world_run(&w, 2 * S);
	for (int i = 0; i < 200; i++) {
		assert_non_null(pull(&w, NULL, 0));
		world_run(&w, S);
	}
	assert_non_null(prefetch_at(w.core, 63));
	assert_null(prefetch_at(w.core, 64)); /* the oldest are forgotten */
	world_crash(&w);
	assert_null(prefetch_at(w.core, 0));
	world_done(&w);
}

/* A job is brought its image first; two that want one image of one node are one pull. */
static void jobs_come_first(void **state)
{
	struct world w;
	struct submit spec;

	make(&w, 2, 1);
	for (size_t i = 0; i < 2; i++) {
		w.toys[i].images = true;
		snprintf(w.toys[i].instance, sizeof(w.toys[i].instance), "again");
		world_hello(&w, i);
	}
	const struct prefetch *p = pull(&w, NULL, 0);

	world_recipe(&spec, 1);
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("r/b:v1");
	int64_t first = world_submit(&w, &spec), second = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	it_knows(&w, 0, true);
	it_knows(&w, 1, true);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, first)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, second)->state, JOB_RUNNING);
	assert_true(p->ended_at != MO_NONE);
	world_done(&w);
}

/* A job that has run waits for an image that is refused: others are brought theirs meanwhile. */
static void what_is_refused_is_no_work(void **state)
{
	struct world w;
	struct submit spec;
	char *other[] = { (char *)"n1" };

	make(&w, 2, 1);
	w.toys[0].images = true;
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "again");
	world_hello(&w, 0);
	world_recipe(&spec, 2);
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("r/b:v1");
	int64_t job = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	it_knows(&w, 0, true);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, job)->state, JOB_RUNNING);
	it_knows(&w, 0, false);
	w.toys[0].image.error = (char *)"no answer";
	w.toys[0].image.job = job;
	world_iteration(&w, 0, job, 10);
	world_exit(&w, 0, job, 0, 0, 9);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, job)->attempt, 1);
	assert_non_null(pull(&w, other, 1));
	world_run(&w, 5 * S);
	assert_int_equal(w.toys[1].n_ordered, 0); /* it may be at it again */
	w.toys[0].image.refused = true;
	world_run(&w, 5 * S);
	assert_int_equal(w.toys[1].n_ordered, 1);
	world_done(&w);
}

static void removal_is_told(void **state)
{
	struct world w;
	char *nodes[] = { (char *)"n0", (char *)"none" };
	struct in_images_remove rm = { .what = (char *)A, .nodes = nodes, .n_nodes = 2 };
	const struct core_input in = { .type = IN_IMAGES_REMOVE,
				       .request = 1,
				       .by = { .user = (char *)"ann" },
				       .images_remove = &rm };

	make(&w, 1, 32);
	world_step(&w, &in);
	assert_int_equal(w.reply_status, 404);
	assert_false(world_event_seen(&w, "audit.images_removed"));
	rm.n_nodes = 1;
	world_step(&w, &in);
	assert_int_equal(w.reply_status, 200);
	assert_true(world_event_seen(&w, "audit.images_removed"));
	assert_true(images_known(w.core, "n0"));
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_says_which_one_it_is),
		cmocka_unit_test(no_more_than_may_pull),
		cmocka_unit_test(it_ends_where_a_node_cannot),
		cmocka_unit_test(it_ends_with_its_time),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(jobs_come_first),
		cmocka_unit_test(what_is_refused_is_no_work),
		cmocka_unit_test(removal_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
