/* What is said of the room for checkpoints before a job is taken: by what nodes measured for jobs
 * before, and by the plan. Checkpoints are of 100 bytes each. */
#include "daemon/core/state/forecast.h"

#include <string.h>

#include "daemon/core/state/space.h"
#include "tests/unit/dcore/saver.h"

static void like_before(struct submit *spec, const char *dir)
{
	world_recipe(spec, 2);
	mo_str_set(&spec->recipe.checkpoint.dir, dir);
	spec->recipe.checkpoint.resume = -1;
	spec->recipe.steps = 100;
	spec->recipe.checkpoint.every = 10;
	spec->engine.layout.announced_is_complete = true;
}

static void promised(struct submit *spec, double checkpoint_gb, double step_time_s)
{
	spec->promise = mo_desc_new(&promise_desc);
	spec->promise->checkpoint_gb = checkpoint_gb;
	spec->promise->step_time_s = step_time_s;
}

static void room_is(const struct saver *o, const struct submit *spec, const char *text)
{
	_cleanup_(mo_freep) char *t = forecast_room(core_state(o->w.core), spec);

	if (text && !t)
		fail_msg("nothing is said, wanted: %s", text);
	if (!text && t)
		fail_msg("%s", t);
	if (text && !strstr(t, text))
		fail_msg("%s\nwanted: %s", t, text);
}

/* One job saved there, and a node looked. */
static void saved(struct saver *o, int64_t free_bytes)
{
	saver_steps(o, 100, 10, 0);
	saver_run(o, 2);
	o->w.scan.free_bytes = free_bytes;
	saver_save(o, 10);
	saver_run(o, 2);
	assert_int_equal(saver_job(o)->progress.shown.checkpoint_free_bytes, free_bytes);
	assert_int_not_equal(saver_job(o)->saves.space_at, MO_NONE);
}

static void by_what_lies_there(void **state)
{
	struct saver *o = *state;
	struct submit spec;

	saved(o, 850);
	like_before(&spec, "/ckpt");
	room_is(o, &spec,
		"checkpoint.dir: 8 more checkpoints of 100 B fit in /ckpt (850 B free), and 9 are "
		"due: it is full at iteration 100; they are as large as those of j-1, what is free "
		"was measured there for j-1 at ");
	room_is(o, &spec, "; checkpoint.keep: N keeps the newest N alone");
	spec.recipe.checkpoint.resume = -2; /* all of them are due, and those before stay */
	room_is(o, &spec, "and 10 are due");
	spec.recipe.checkpoint.keep = 2;
	room_is(o, &spec, NULL);
	spec.recipe.checkpoint.keep = 8;
	room_is(o, &spec, "and 9 are due");
	spec.engine.layout.unnumbered = true; /* it writes over the one that it has */
	room_is(o, &spec, NULL);
	mo_desc_done(&submit_desc, &spec);
}

static void by_the_plan(void **state)
{
	struct saver *o = *state;
	struct submit spec;

	saved(o, 3500000);
	like_before(&spec, "/ckpt");
	mo_str_set(&spec.recipe.engine.kind, "another"); /* whose checkpoints say nothing */
	room_is(o, &spec, NULL);
	promised(&spec, 0.001, 360);
	spec.recipe.checkpoint.resume = -2;
	room_is(o, &spec,
		"3 more checkpoints of 1.0 MB, as planned for weights and optimizer states, fit in "
		"/ckpt (3.5 MB free), and 10 are due: it is full at iteration 40, in about 4.0 h "
		"as "
		"planned; what is free was measured there for j-1");
	spec.promise->checkpoint_gb = 0.004;
	room_is(o, &spec,
		"the next checkpoint of 4.0 MB, as planned for weights and optimizer states, does "
		"not fit in /ckpt (3.5 MB free)");
	spec.promise->checkpoint_gb = MO_NONE_F; /* of an earlier version, or unknown */
	room_is(o, &spec, NULL);
	mo_desc_done(&submit_desc, &spec);
}

/* A directory that nobody looked into yet. */
static void by_what_lies_beside_it(void **state)
{
	struct saver *o = *state;
	struct submit spec;

	saved(o, 250);
	mo_str_set(&((struct job *)saver_job(o))->saves.dir, "/fs/runs/a");
	like_before(&spec, "/fs/runs/b");
	mo_str_set(&spec.user, "bob");
	room_is(o, &spec, NULL); /* of another user's name nothing is taken */
	mo_str_set(&spec.user, saver_job(o)->spec.user);
	room_is(o, &spec,
		"2 more checkpoints of 100 B fit in /fs/runs/b (250 B free), and 10 are due: it is "
		"full at iteration 30; they are as large as those of j-1, what is free was "
		"measured "
		"beside it, perhaps in another file system, for j-1 at ");
	mo_str_set(&spec.recipe.name, "other");
	room_is(o, &spec, NULL);
	mo_str_set(&spec.recipe.name, saver_job(o)->spec.recipe.name);
	mo_str_set(&spec.recipe.checkpoint.dir, "/fs/others/b");
	room_is(o, &spec, NULL);
	mo_str_set(&spec.recipe.checkpoint.dir, "/fs");
	room_is(o, &spec, NULL);
	mo_desc_done(&submit_desc, &spec);
}

static void nothing_is_said_of_what_is_not_known(void **state)
{
	struct saver *o = *state;
	struct submit spec;

	like_before(&spec, "/ckpt");
	promised(&spec, 1000, 1);
	room_is(o, &spec, NULL); /* nobody looked */
	mo_str_set(&spec.recipe.checkpoint.dir, NULL);
	room_is(o, &spec, NULL);
	mo_desc_done(&submit_desc, &spec);
}

/* The first look at the directory, before any GPU is taken, is held against the plan. */
static void a_scan_before_the_first_attempt_is_held_against_the_plan(void **state)
{
	struct saver *o = *state;
	struct submit spec;

	world_done(&o->w);
	world_init(&o->w, 1, 2);
	like_before(&spec, "/ckpt");
	promised(&spec, 0.001, 1);
	o->w.scan.free_bytes = 2500000;
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	saver_run(o, 2);
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_int_equal(world_events(&o->w, "checkpoint.space"), 1);
	assert_int_equal(saver_job(o)->progress.shown.checkpoints_fit, 2);
	world_why_has(&o->w, o->id,
		      "2 more checkpoints of 1.0 MB, as planned for weights and optimizer states, "
		      "fit in /ckpt");
	/* the first that it saves is smaller: that counts, and there is room */
	o->w.verify = true;
	saver_save(o, 10);
	saver_run(o, 2);
	assert_int_equal(space_of(saver_job(o)).level, SPACE_ENOUGH);
	assert_int_equal(world_events(&o->w, "checkpoint.space"), 1);
}

static void save_is(const struct saver *o, const struct submit *spec, const char *text)
{
	_cleanup_(mo_freep) char *t = forecast_save(core_state(o->w.core), spec);

	if (!text || !t)
		assert_ptr_equal(t, text);
	else if (!strstr(t, text))
		fail_msg("%s", t);
}

/* By what was measured there: nothing is said where nothing was. */
static void a_save_that_takes_longer_than_the_time_between_two(void **state)
{
	struct saver *o = *state;
	struct submit spec;
	struct job *j;

	saved(o, 1LL << 50);
	like_before(&spec, "/ckpt");
	mo_str_set(&spec.recipe.engine.kind, "another");
	promised(&spec, 0.001, 60);
	save_is(o, &spec, NULL);
	j = (struct job *)saver_job(o);
	j->saves.n = 4; /* 20 s each, of 100 bytes */
	j->ledger[GPU_SAVE] = 4 * 20 * S * job_gpus(j);
	save_is(o, &spec,
		"checkpoint.every: a save of 1.0 MB, as planned, would keep training waiting for "
		"about 200000 s (one of 100 B in that directory kept j-1 waiting for 20 s), longer "
		"than the 10 iterations between two: 600 s as planned");
	spec.promise->checkpoint_gb = 2.9e-6;
	save_is(o, &spec, NULL);
	mo_desc_done(&submit_desc, &spec);
	j->saves.n = 0;
	j->ledger[GPU_SAVE] = 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)
	const struct CMUnitTest tests[] = {
		T(by_what_lies_there),
		T(by_the_plan),
		T(by_what_lies_beside_it),
		T(nothing_is_said_of_what_is_not_known),
		T(a_scan_before_the_first_attempt_is_held_against_the_plan),
		T(a_save_that_takes_longer_than_the_time_between_two),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
