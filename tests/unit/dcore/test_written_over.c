/* checkpoint.layout without iteration: each save writes over the last one, so there is one
 * checkpoint, and its copy is asked for before an attempt. */
#include "tests/unit/dcore/saver.h"

#include <signal.h>
#include <string.h>

static void submit(struct saver *o, int64_t resume)
{
	struct submit spec;

	world_done(&o->w);
	world_init(&o->w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = resume;
	spec.engine.layout.entry = mo_strdup("^ckpt\\.pt$");
	spec.engine.layout.given = spec.engine.layout.unnumbered = true;
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	saver_run(o, 3);
}

static void announce(struct saver *o, int64_t iteration, const char *unkept)
{
	world_iteration(&o->w, 0, o->id, iteration);
	struct note *n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);

	n->iteration = iteration;
	n->path = mo_strdup("/ckpt/ckpt.pt");
	n->text = unkept ? mo_strdup(unkept) : NULL;
	saver_run(o, 1);
}

/* The last scan or launch that the node was sent. */
static const struct command *last(const struct saver *o, int kind)
{
	const struct command *c = NULL;

	for (size_t i = 0; i < o->w.toys[0].n_log; i++)
		c = o->w.toys[0].log[i].kind == kind ? &o->w.toys[0].log[i] : c;
	assert_non_null(c);
	return c;
}

static void one_is_left(void **state)
{
	struct saver *o = *state;

	submit(o, -1);
	assert_true(last(o, CMD_SCAN)->restore);
	assert_non_null(last(o, CMD_LAUNCH)->launch->keep);
	announce(o, 20, NULL);
	announce(o, 40, "no copy of it is kept: there is no room for one");
	assert_int_equal(saver_state(o, 20), CKPT_DELETED);
	assert_int_equal(saver_state(o, 40), CKPT_COMPLETE);
	assert_int_equal(world_events(&o->w, "checkpoint.unkept"), 1);
	/* nobody looks while it may be written over */
	assert_int_equal(world_count(&o->w, 0, CMD_SCAN), 1);
	world_iteration(&o->w, 0, o->id, 60);
	/* it was saved again, and not seen before the death */
	world_found(&o->w, 60, true);
	saver_crash(o);
	saver_resumed(o, 2, 60);
	assert_int_equal(saver_state(o, 40), CKPT_DELETED);
	assert_string_equal(checkpoint_find(saver_job(o), 20)->reason,
			    "a later save wrote over it");
	assert_int_equal(world_events(&o->w, "checkpoint.torn"), 0);
}

static void torn_and_no_copy_waits(void **state)
{
	struct saver *o = *state;

	submit(o, -1);
	announce(o, 20, NULL);
	world_found(&o->w, 0, false);
	saver_crash(o);
	saver_run(o, 5);
	assert_int_equal(saver_job(o)->state, JOB_RECOVERING);
	assert_non_null(strstr(saver_job(o)->reason,
			       "every checkpoint in /ckpt is damaged; the newest, 20"));
	assert_int_equal(saver_restart(o, 0), 200);
	saver_run(o, 40);
	saver_resumed(o, 2, -1);
}

/* A number in the file beyond what the job printed is no work of somebody else: the file is this
 * job's. */
static void its_own_count_is_believed(void **state)
{
	struct saver *o = *state;

	submit(o, -1);
	world_iteration(&o->w, 0, o->id, 20);
	saver_run(o, 1);
	world_found(&o->w, 5000, true);
	saver_crash(o);
	saver_resumed(o, 2, 5000);
}

static void a_fresh_start_asks_for_nothing_back(void **state)
{
	struct saver *o = *state;

	submit(o, -2);
	assert_false(last(o, CMD_SCAN)->restore);
	saver_crash(o);
	assert_true(last(o, CMD_SCAN)->restore);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_is_left, saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(torn_and_no_copy_waits, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(its_own_count_is_believed, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(a_fresh_start_asks_for_nothing_back, saver_setup,
						saver_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
