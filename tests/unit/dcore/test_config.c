/* What a node read of the engine's own configuration: judged by the shell, and then what the job
 * is. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/view/why_view.h"
#include "lib/model/limits.h"
#include "daemon/core/view/why.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

/* Its steps are left to the engine's files, which the submit read as `hash` (NULL: did not). */
static int64_t leaves_steps_of(struct world *w, const char *user, int64_t gpus, const char *hash)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, gpus);
	mo_str_set(&spec.user, user ? user : spec.user);
	spec.engine.experiment = mo_strdup("primus");
	mo_str_set(&spec.recipe_text, "recipe: 1\n");
	mo_strs_add(&spec.recipe.left, &spec.recipe.n_left, "steps");
	spec.recipe.experiment_hash = mo_strdup(hash);
	spec.recipe.steps = hash ? 7 : MO_NONE;
	mo_str_set(&spec.recipe.precision, "bf16"); /* all of these share it */
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	return id;
}

static int64_t leaves_steps(struct world *w, int64_t gpus, const char *hash)
{
	return leaves_steps_of(w, NULL, gpus, hash);
}

static bool asked(const struct world *w, int64_t id)
{
	bool found = false;

	for (size_t i = 0; i < w->out.n_effects; i++)
		found |= w->out.effects[i].type == FX_CONFIG && w->out.effects[i].job == id;
	return found;
}

static void reads(struct world *w, size_t toy, int64_t id, int64_t rank)
{
	struct note *n = world_note(w, toy, id, NOTE_STARTED);

	n->rank = rank;
	n->pid = 1;
	n->config = mo_strdup("{\"result\": 1}");
}

static struct config_read *read_as(int64_t steps)
{
	struct config_read *c = mo_desc_new(&config_read_desc);

	c->hash = mo_strdup("crc32c:0000000a");
	c->recipe = mo_desc_new(&recipe_desc);
	c->recipe->steps = steps;
	mo_str_set(&c->recipe->precision, "fp8");
	mo_str_set(&MO_ADD(&c->recipe->engine, own, &kv_desc)->key, "train_iters");
	c->recipe->parallelism.tp = 2;
	c->recipe->parallelism.pp = c->recipe->parallelism.cp = c->recipe->parallelism.ep =
		c->recipe->parallelism.dp = 1;
	return c;
}

/* Takes c. */
static void judged(struct world *w, int64_t id, int64_t attempt, struct config_read *c)
{
	world_step(w, &(struct core_input){ .type = IN_CONFIG,
					    .config = &(struct in_config){
						    .job = id, .attempt = attempt, .read = c } });
	mo_desc_free(&config_read_desc, c);
}

static void does(struct world *w, int64_t id, int64_t iterations)
{
	for (int64_t i = 1; i <= iterations; i++)
		world_iteration(w, 0, id, i);
	world_exit(w, 0, id, 0, 0, 0);
	world_exit(w, 0, id, 1, 0, 0);
	world_run(w, 2 * S);
}

/* How it ended is not said before its steps are known, also when the controller dies in between. */
static void its_steps_are_those_of_the_files(void **state)
{
	for (int64_t done = 2; done <= 3; done++) {
		struct world w;

		world_init(&w, 1, 2);
		int64_t id = leaves_steps(&w, 2, NULL);

		reads(&w, 0, id, 0);
		world_beat(&w, 0);
		assert_true(world_job(&w, id)->config.due);
		does(&w, id, done);
		assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
		world_crash(&w);
		assert_true(asked(&w, id));
		judged(&w, id, 1, read_as(3));
		assert_int_equal(world_job(&w, id)->spec.recipe.steps, 3);
		assert_string_equal(world_job(&w, id)->spec.recipe.precision, "fp8");
		assert_int_equal(world_job(&w, id)->state, done == 3 ? JOB_COMPLETED : JOB_FAILED);
		assert_true(done == 3 ||
			    strstr(world_job(&w, id)->reason, "ended early at 2 of 3"));
		assert_true(world_event_seen(&w, "config.read"));
		assert_int_equal(world_job(&w, id)->run.ranks[1].coords->tp, 1);
		world_done(&w);
	}
}

/* What a submit would have been refused for ends the attempt, for good, with the rule's place. */
static void what_rules_refuse_ends_it(void **state)
{
	struct config_read *c = read_as(3);
	struct why_view why;
	struct world w;

	world_init(&w, 2, 2);
	int64_t id = leaves_steps(&w, 4, NULL);

	reads(&w, 0, id, 0);
	world_beat(&w, 0);
	mo_desc_free(&recipe_desc, c->recipe);
	c->recipe = NULL;
	c->refused = mo_strdup("e.yaml:9: num_experts: 6 does not go with it");
	judged(&w, id, 1, c);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_job(&w, id)->spec.recipe.steps, MO_NONE);
	assert_string_equal(world_job(&w, id)->reason,
			    "the engine's configuration on n0; it said: e.yaml:9: num_experts: 6 "
			    "does not go with it");
	assert_string_equal(world_job(&w, id)->incidents[0].class, "user_error");
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(w.core), world_job(&w, id), w.now, &why);
	bool seen = false;
	for (size_t i = 0; i < why.n_reasons; i++)
		for (size_t k = 0; k < why.reasons[i].n_evidence; k++)
			seen |= strstr(why.reasons[i].evidence[k], "e.yaml:9: num_experts") != NULL;
	assert_true(seen);
	mo_desc_done(&why_view_desc, &why);
	world_done(&w);
}

/* What is said of the files repeats their words, and is kept in several places. */
static void what_is_said_is_cut(void **state)
{
	struct config_read *c = mo_desc_new(&config_read_desc);
	struct world w;

	world_init(&w, 1, 2);
	int64_t id = leaves_steps(&w, 2, NULL);

	reads(&w, 0, id, 0);
	world_beat(&w, 0);
	c->refused = mo_alloc(100001);
	memset(c->refused, 'x', 100000);
	judged(&w, id, 1, c);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_true(strlen(world_job(&w, id)->config.refused) <= MO_TEXT_MAX);
	assert_true(strlen(world_job(&w, id)->reason) <= MO_TEXT_MAX + 100);
	world_done(&w);
}

static struct config_read *refused_as(const char *hash)
{
	struct config_read *c = mo_desc_new(&config_read_desc);

	c->hash = mo_strdup(hash);
	c->refused = mo_strdup("it needs 300 GiB, and a GPU has 192");
	return c;
}

/* An attempt that trained is not refused afterwards: by a newer version's rules, or by an estimate.
 * Other files are. */
static void what_trained_is_not_refused(void **state)
{
	static const char *const hashes[] = { "crc32c:0000000a", "crc32c:0000000b" };

	for (size_t i = 0; i < ELEMENTSOF(hashes); i++) {
		struct world w;

		world_init(&w, 1, 2);
		int64_t id = leaves_steps(&w, 2, NULL);

		reads(&w, 0, id, 0);
		world_beat(&w, 0);
		judged(&w, id, 1, read_as(9));
		world_iteration(&w, 0, id, 1);
		world_exit(&w, 0, id, 0, 0, 9);
		world_run(&w, 20 * S);
		assert_int_equal(world_job(&w, id)->attempt, 2);
		reads(&w, 0, id, 0);
		world_beat(&w, 0);
		judged(&w, id, 2, refused_as(hashes[i]));
		world_run(&w, 5 * S);
		if (i == 0)
			world_iteration(&w, 0, id, 1);
		world_run(&w, 5 * S);
		assert_int_equal(world_job(&w, id)->state, i == 0 ? JOB_RUNNING : JOB_FAILED);
		assert_int_equal(world_event_seen(&w, "config.warning"), i == 0);
		assert_int_equal(world_job(&w, id)->spec.recipe.steps, 9);
		world_done(&w);
	}
}

/* A node judges the files before a job's first iteration, and only reads them afterwards. */
static void nodes_judge_what_never_trained(void **state)
{
	struct world w;

	world_init(&w, 1, 2);
	int64_t id = leaves_steps(&w, 2, NULL);

	for (int trained = 0; trained < 2; trained++) {
		struct launch l;

		mo_desc_init(&launch_desc, &l);
		launch_make(core_state(w.core), world_job(&w, id), 0, &l);
		assert_string_equal(l.config, "primus");
		assert_int_equal(l.recipe != NULL, !trained);
		mo_desc_done(&launch_desc, &l);
		reads(&w, 0, id, 0);
		world_beat(&w, 0);
		world_iteration(&w, 0, id, 1);
		world_beat(&w, 0);
	}
	world_done(&w);
}

/* Nor one that nobody judged when it began: the controller was away, or an older one did not
 * ask. */
static void what_trains_long_is_not_refused(void **state)
{
	for (int late = 0; late < 2; late++) {
		struct world w;

		world_init(&w, 1, 2);
		int64_t id = leaves_steps(&w, 2, NULL);

		reads(&w, 0, id, 0);
		world_beat(&w, 0);
		world_iteration(&w, 0, id, 1);
		world_run(&w, (late ? 100 : 5) * S);
		world_crash(&w);
		assert_true(asked(&w, id));
		judged(&w, id, 1, refused_as("crc32c:0000000a"));
		world_run(&w, 20 * S);
		assert_int_equal(world_job(&w, id)->state, late ? JOB_RUNNING : JOB_FAILED);
		world_done(&w);
	}
}

static void what_is_only_odd_is_reported(void **state)
{
	struct config_read *c = read_as(5);
	struct world w;

	world_init(&w, 1, 2);
	int64_t id = leaves_steps(&w, 2, "crc32c:0000000b");

	reads(&w, 0, id, 0);
	world_beat(&w, 0);
	mo_strs_add(&c->warnings, &c->n_warnings, "low.yaml:3: odd");
	judged(&w, id, 1, c);
	assert_true(world_event_seen(&w, "config.warning"));
	assert_true(world_event_seen(&w, "config.differs"));
	world_why_has(&w, id, "are not those that the submit read");
	world_why_has(&w, id, "the submit read crc32c:0000000b, n0 has ");
	assert_false(world_event_seen(&w, "config.read"));
	assert_int_equal(world_job(&w, id)->spec.recipe.steps, 5);
	assert_string_equal(world_job(&w, id)->spec.recipe.experiment_hash, "crc32c:0000000b");
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

/* Nothing can be said: the job goes on by what its recipe says, and that is reported. */
static void what_cannot_be_judged_stops_nothing(void **state)
{
	struct config_read *c = mo_desc_new(&config_read_desc);
	struct world w;

	world_init(&w, 1, 2);
	int64_t id = leaves_steps(&w, 2, NULL);

	reads(&w, 0, id, 0);
	world_beat(&w, 0);
	c->unjudged = mo_strdup("no text");
	judged(&w, id, 1, c);
	assert_true(world_event_seen(&w, "config.warning"));
	does(&w, id, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_COMPLETED);
	world_done(&w);
}

/* The interval was made without them: it is reported, and the next attempt has another. */
static void an_interval_beyond_the_end_is_mended(void **state)
{
	struct submit spec;
	struct world w;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	spec.engine.experiment = mo_strdup("primus");
	mo_str_set(&spec.recipe_text, "recipe: 1\n");
	mo_strs_add(&spec.recipe.left, &spec.recipe.n_left, "steps");
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.every = 200;
	spec.recipe.checkpoint.automatic = true;
	int64_t id = world_submit(&w, &spec);

	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	reads(&w, 0, id, 0);
	world_beat(&w, 0);
	judged(&w, id, 1, read_as(50));
	assert_true(world_event_seen(&w, "config.warning"));
	world_exit(&w, 0, id, 0, 0, 9);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->saves.every, 5);
	world_done(&w);
}

/* Only the node of rank 0 speaks for the job, and an answer about another attempt is none. */
static void others_change_nothing(void **state)
{
	struct world w;

	world_init(&w, 2, 2);
	int64_t id = leaves_steps(&w, 4, NULL);

	reads(&w, 1, id, 2);
	reads(&w, 1, id, 0);
	world_beat(&w, 1);
	assert_false(world_job(&w, id)->config.due);
	assert_null(world_job(&w, id)->config.text);
	judged(&w, id, 1, read_as(3));
	assert_int_equal(world_job(&w, id)->spec.recipe.steps, MO_NONE);
	reads(&w, 0, id, 0);
	world_beat(&w, 0);
	judged(&w, id, 2, read_as(3));
	judged(&w, 77, 1, read_as(3));
	assert_int_equal(world_job(&w, id)->spec.recipe.steps, MO_NONE);
	judged(&w, id, 1, read_as(4));
	judged(&w, id, 1, read_as(3));
	assert_int_equal(world_job(&w, id)->spec.recipe.steps, 4);
	world_done(&w);
}

static void saves_to(struct world *w, size_t toy, int64_t id, const char *dir)
{
	struct config_read *c = read_as(9);

	c->directory = mo_strdup(dir);
	c->directory_said = mo_strdup("low.yaml:3: exp_name");
	reads(w, toy, id, 0);
	world_beat(w, toy);
	judged(w, id, 1, c);
}

/* Two unfinished jobs never save to one directory, whoever says it: their files, or a recipe. */
static void no_two_jobs_save_there(void **state)
{
	struct submit spec;
	struct world w;

	world_init(&w, 3, 2);
	int64_t first = leaves_steps(&w, 2, NULL), second = leaves_steps(&w, 2, NULL),
		third = leaves_steps(&w, 2, NULL);

	saves_to(&w, 0, first, "/o/e");
	saves_to(&w, 1, second, "/o/e");
	saves_to(&w, 2, third, "/o/f");
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, first)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, third)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, second)->state, JOB_FAILED);
	assert_non_null(strstr(world_job(&w, second)->reason,
			       "low.yaml:3: exp_name: the engine saves to /o/e, which is that of "
			       "j-1 (job), which is running"));
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/o/./e");
	assert_int_equal(world_submit(&w, &spec), -409);
	mo_desc_done(&submit_desc, &spec);
	world_done(&w);
}

/* Without engine.workdir names are below the home, and each user has his own. */
static void homes_are_not_shared(void **state)
{
	struct world w;

	world_init(&w, 3, 2);
	int64_t ann = leaves_steps_of(&w, "ann", 2, NULL),
		bob = leaves_steps_of(&w, "bob", 2, NULL);
	int64_t again = leaves_steps_of(&w, "ann", 2, NULL);

	saves_to(&w, 0, ann, "o/e");
	saves_to(&w, 1, bob, "o/e");
	saves_to(&w, 2, again, "o/e");
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, ann)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, bob)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, again)->state, JOB_FAILED);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_steps_are_those_of_the_files),
		cmocka_unit_test(what_rules_refuse_ends_it),
		cmocka_unit_test(what_is_said_is_cut),
		cmocka_unit_test(what_trained_is_not_refused),
		cmocka_unit_test(nodes_judge_what_never_trained),
		cmocka_unit_test(what_trains_long_is_not_refused),
		cmocka_unit_test(what_is_only_odd_is_reported),
		cmocka_unit_test(what_cannot_be_judged_stops_nothing),
		cmocka_unit_test(an_interval_beyond_the_end_is_mended),
		cmocka_unit_test(others_change_nothing),
		cmocka_unit_test(no_two_jobs_save_there),
		cmocka_unit_test(homes_are_not_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
