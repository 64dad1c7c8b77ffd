/* engine.container: jobs with an image go to nodes that can run one, and nowhere else. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/rules/launch.h"
#include "lib/model/launch.h"

static int64_t submit_image(struct world *w, int64_t gpus)
{
	struct submit spec;

	world_recipe(&spec, gpus);
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("dir:/i");
	int64_t id = world_submit(w, &spec);

	mo_desc_done(&submit_desc, &spec);
	return id;
}

/* Its agent is started anew, and can run images or not. */
#define DIGEST "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void can(struct world *w, size_t toy, bool yes)
{
	static int starts;

	w->toys[toy].images = yes;
	snprintf(w->toys[toy].instance, sizeof(w->toys[toy].instance), "again-%d", ++starts);
	world_hello(w, toy);
}

static const struct launch *launch_of(const struct world *w, size_t toy)
{
	const struct toy *t = &w->toys[toy];

	for (size_t i = t->n_log; i > 0; i--)
		if (t->log[i - 1].kind == CMD_LAUNCH)
			return t->log[i - 1].launch;
	return NULL;
}

static void it_waits_for_nodes_that_can(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 4, 2);
	can(&w, 1, true);
	can(&w, 2, true);
	id = submit_image(&w, 6);
	world_run(&w, S);
	world_waits(&w, id, WAITING_IMAGES,
		    "needs 6 GPUs on nodes that can run an image (engine.container); only 4 of 8 "
		    "are, on nodes that take work now",
		    "needs 6 GPUs on nodes that can run an image (engine.container); only 4 of 8 "
		    "are, on nodes that take work now");
	world_why_has(&w, id, "node n0 runs no image: its agent (");
	world_next_has(&w, id, "run as root");
	assert_int_equal(world_submit_gpus(&w, 2), id + 1); /* holds nobody up */
	world_run(&w, S);
	assert_int_equal(world_job(&w, id + 1)->state, JOB_RUNNING);
	world_verb(&w, IN_CANCEL, id + 1);
	can(&w, 3, true);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_null(place_of(world_job(&w, id), "n0"));
	assert_string_equal(launch_of(&w, 1)->container->image, "dir:/i");
	world_done(&w);
}

/* An older agent would run the ranks as the user. */
static void root_waits_for_nodes_that_can(void **state)
{
	struct world w;
	struct submit spec;

	world_init(&w, 2, 2);
	can(&w, 0, true);
	can(&w, 1, true);
	world_recipe(&spec, 2);
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("dir:/i");
	spec.recipe.engine.container->user = CONTAINER_ROOT;
	int64_t id = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	world_why_has(&w, id, "node n0 has no root in an image (engine.container.user)");
	w.toys[1].image_root = true;
	can(&w, 1, true);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_non_null(place_of(world_job(&w, id), "n1"));
	assert_int_equal(launch_of(&w, 1)->container->user, CONTAINER_ROOT);
	world_done(&w);
}

/* Nor would it let the runtime start a container. */
static void a_runtime_waits_for_nodes_that_let_it(void **state)
{
	struct world w;
	struct submit spec;

	world_init(&w, 2, 2);
	w.toys[0].holds = "podman";
	can(&w, 0, true);
	can(&w, 1, true);
	world_recipe(&spec, 2);
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("docker:i");
	spec.recipe.engine.container->runtime = mo_strdup("docker");
	int64_t id = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	world_why_has(&w, id, "node n0 lets docker start no container (engine.container.runtime)");
	w.toys[1].holds = "docker";
	w.toys[1].brings = true;
	w.toys[1].image = (struct image_report){ .digest = (char *)DIGEST,
						 .ready = true,
						 .done = MO_NONE,
						 .total = MO_NONE,
						 .tries = MO_NONE };
	can(&w, 1, true);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_non_null(place_of(world_job(&w, id), "n1"));
	assert_string_equal(launch_of(&w, 1)->container->runtime, "docker");
	world_done(&w);
}

/* Too few nodes take work: what they can run is not what it waits for. */
static void nodes_away_are_said_before(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	can(&w, 0, true);
	world_node_verb(&w, IN_DRAIN, 1, "now");
	id = submit_image(&w, 4);
	world_run(&w, S);
	world_waits(&w, id, WAITING_NODES,
		    "needs 4 GPUs; only 2 of 4 are on nodes that take work now",
		    "needs 4 GPUs; only 2 of 4 are on nodes that take work now");
	world_done(&w);
}

/* An agent that does not know images would start the ranks without theirs. */
static void an_agent_of_before_gets_no_launch(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	can(&w, 0, true);
	w.no_launch = true;
	id = submit_image(&w, 2);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	can(&w, 0, false);
	w.no_launch = false;
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	world_why_has(&w, id, "node n0 does not get the launch: its agent cannot run an image");
	can(&w, 0, true);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

/* checkpoint.dir, {user} filled in, is mounted where the recipe mounts nothing that has it. */
static void the_launch_mounts_checkpoints(void **state)
{
	static const struct {
		const char *mount, *dir;
		size_t n;
	} rows[] = { { "/data", "/c", 2 }, { "/c", "/c/d", 1 }, { "/data", NULL, 1 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct world w;
		struct job j;
		struct launch launch;
		struct recipe_container *c = mo_desc_new(&recipe_container_desc);
		struct container_mount *m = MO_ADD(c, mounts, &container_mount_desc);
		struct place *p;

		world_init(&w, 1, 2);
		mo_desc_init(&job_desc, &j);
		mo_desc_init(&launch_desc, &launch);
		world_recipe(&j.spec, 2);
		j.spec.recipe.engine.container = c;
		m->source = mo_strdup(rows[i].mount);
		m->target = mo_strdup(rows[i].mount);
		mo_str_set(&j.spec.recipe.checkpoint.dir, rows[i].dir);
		p = MO_ADD(&j.run, places, &place_desc);
		p->node = mo_strdup("n0");
		launch_make(core_state(w.core), &j, 0, &launch);
		assert_int_equal(launch.container->n_mounts, rows[i].n);
		if (rows[i].n == 2) {
			assert_string_equal(launch.container->mounts[1].source, rows[i].dir);
			assert_string_equal(launch.container->mounts[1].target, rows[i].dir);
			assert_false(launch.container->mounts[1].readonly);
		}
		mo_desc_done(&launch_desc, &launch);
		mo_desc_done(&job_desc, &j);
		world_done(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_waits_for_nodes_that_can),
		cmocka_unit_test(root_waits_for_nodes_that_can),
		cmocka_unit_test(a_runtime_waits_for_nodes_that_let_it),
		cmocka_unit_test(nodes_away_are_said_before),
		cmocka_unit_test(an_agent_of_before_gets_no_launch),
		cmocka_unit_test(the_launch_mounts_checkpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
