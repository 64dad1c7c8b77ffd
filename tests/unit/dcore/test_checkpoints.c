/* Where attempts resume: only from what is complete, never a silent fresh start. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

#include "lib/model/limits.h"

static int64_t submit(struct world *w, int64_t resume)
{
	struct submit spec;
	int64_t id;

	world_init(w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = resume;
	mo_strs_add(&spec.engine.resume, &spec.engine.n_resume, "--load={dir}/{iteration}");
	mo_strs_add(&spec.engine.fresh, &spec.engine.n_fresh, "--fresh");
	spec.engine.layout.announced_is_complete = true;
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	return id;
}

static void save(struct world *w, int64_t id, int64_t iteration)
{
	struct note *n;

	world_iteration(w, 0, id, iteration);
	n = world_note(w, 0, id, NOTE_SAVING);
	n->iteration = iteration;
	n = world_note(w, 0, id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(w, iteration, true);
	world_run(w, S);
}

static void a_new_job_resumes_from_what_lies_there(void **state)
{
	static const struct { int64_t resume; int64_t expect; const char *word; } cases[] = { { -1, 200, "--load=/ckpt/200" }, { -2, -1, "--fresh" }, { 100, 100, "--load=/ckpt/100" } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct world w;
		const struct launch *l = NULL;
		int64_t id = submit(&w, cases[i].resume);

		world_found(&w, 300, false);
		world_found(&w, 100, true);
		world_found(&w, 200, true);
		world_run(&w, 2 * S);
		assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
		assert_int_equal(world_job(&w, id)->resume, cases[i].expect);
		for (size_t k = 0; k < w.toys[0].n_log; k++)
			l = w.toys[0].log[k].launch ? w.toys[0].log[k].launch : l;
		assert_non_null(l);
		assert_string_equal(l->argv[1], cases[i].word);
		assert_int_equal(l->resume, cases[i].expect);
		assert_int_equal(checkpoint_find(world_job(&w, id), 300)->state, CKPT_TORN);
		assert_int_equal(checkpoint_find(world_job(&w, id), 200)->state, CKPT_VERIFIED);
		assert_true(world_event_seen(&w, "checkpoint.torn") && world_event_seen(&w, "checkpoint.verified"));
		world_done(&w);
	}
}

static void nothing_there_is_a_fresh_start(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->resume, -1);
	world_done(&w);
}

static void everything_damaged_waits(void **state)
{
	struct world w;
	struct why_view why;
	int64_t id = submit(&w, -1);

	world_found(&w, 300, false);
	world_run(&w, 100 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	assert_non_null(strstr(world_job(&w, id)->reason, "every checkpoint in /ckpt is damaged"));
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(w.core), world_job(&w, id), w.now, &why);
	assert_string_equal(why.reasons[0].code, "checkpoint");
	assert_non_null(strstr(why.reasons[0].evidence[0], "no COMPLETE file"));
	mo_desc_done(&why_view_desc, &why);
	w.scan.items[0].complete = true;   /* repaired */
	world_run(&w, 40 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->resume, 300);
	world_done(&w);
}

static void restart_from_0_is_a_spoken_fresh_start(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_found(&w, 300, false);
	world_run(&w, 5 * S);
	world_step(&w, &(struct core_event){ .type = EV_RESTART, .job = id, .value = 0, .user = "ann" });
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->resume, -1);
	world_done(&w);
}

static void a_named_one_that_is_missing_fails(void **state)
{
	struct world w;
	int64_t id = submit(&w, 150);

	world_found(&w, 100, true);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_non_null(strstr(world_job(&w, id)->reason, "checkpoint.resume: 150"));
	assert_int_equal(world_job(&w, id)->attempt, 0);
	world_done(&w);
}

static void unwritable_and_unreadable(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	w.scan.error = mo_strdup("the helper timed out");
	world_run(&w, 50 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	assert_non_null(strstr(world_job(&w, id)->reason, "timed out"));
	mo_str_set(&w.scan.error, NULL);
	w.scan.writable = false;
	world_run(&w, 50 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_non_null(strstr(world_job(&w, id)->reason, "not writable by ann"));
	world_done(&w);
}

static void recovery_takes_the_newest_complete(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);
	size_t scans;

	world_run(&w, 2 * S);
	save(&w, id, 10);
	save(&w, id, 20);
	scans = world_count(&w, 0, CMD_SCAN);
	w.scan.items[1].complete = false;   /* torn since */
	w.scan.items[1].bytes = 0;
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->resume, 10);
	assert_true(world_count(&w, 0, CMD_SCAN) > scans);
	assert_int_equal(checkpoint_find(world_job(&w, id), 20)->state, CKPT_TORN);
	assert_int_equal(world_job(&w, id)->incidents[0].lost_iterations, 10);
	world_done(&w);
}

static void an_announced_one_counts_without_marker(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_run(&w, 2 * S);
	save(&w, id, 10);
	w.scan.items[0].complete = false;   /* no COMPLETE file, but the engine announced it and bytes are there */
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->resume, 10);
	world_done(&w);
}

static void lost_checkpoints_are_not_a_fresh_start(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_run(&w, 2 * S);
	save(&w, id, 10);
	mo_vec_clear(&found_checkpoint_desc, (void **)&w.scan.items, &w.scan.n_items);   /* not mounted any more */
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_non_null(strstr(world_job(&w, id)->reason, "not found in checkpoint.dir"));
	world_found(&w, 10, true);
	world_run(&w, 40 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->resume, 10);
	world_done(&w);
}

static void an_unfinished_first_save_is_no_loss(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);
	struct note *n;

	world_run(&w, 2 * S);
	world_iteration(&w, 0, id, 10);
	n = world_note(&w, 0, id, NOTE_SAVING);
	n->iteration = 10;
	world_found(&w, 10, false);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->resume, -1);
	world_done(&w);
}

static void restart_from_takes_the_newest_at_most(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_run(&w, 2 * S);
	save(&w, id, 10);
	save(&w, id, 20);
	save(&w, id, 30);
	world_step(&w, &(struct core_event){ .type = EV_RESTART, .job = id, .value = 5, .user = "ann" });
	assert_int_equal(w.reply_status, 409);
	world_step(&w, &(struct core_event){ .type = EV_RESTART, .job = id, .value = 25, .user = "ann" });
	assert_int_equal(w.reply_status, 200);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->resume, 20);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	world_done(&w);
}

static void an_announcement_without_a_number_is_ignored(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);
	struct note *n;

	world_run(&w, 2 * S);
	n = world_note(&w, 0, id, NOTE_CHECKPOINT);
	n->iteration = MO_NONE;
	n->path = mo_strdup("/ckpt/last");
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->n_checkpoints, 0);
	assert_false(world_event_seen(&w, "checkpoint.saved"));
	n = world_note(&w, 0, id, NOTE_CHECKPOINT);
	n->iteration = MO_NONE;
	n->path = mo_strdup("/ckpt/step7");
	world_run(&w, S);
	assert_non_null(checkpoint_find(world_job(&w, id), 7));
	assert_true(world_event_seen(&w, "checkpoint.saved"));
	world_done(&w);
}

static void what_the_user_went_back_behind_is_superseded(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_run(&w, 2 * S);
	save(&w, id, 10);
	save(&w, id, 20);
	save(&w, id, 30);
	world_step(&w, &(struct core_event){ .type = EV_RESTART, .job = id, .value = 10, .user = "ann" });
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->resume, 10);
	for (size_t i = 0; i < world_job(&w, id)->n_checkpoints; i++)
		assert_int_equal(world_job(&w, id)->checkpoints[i].state == CKPT_SUPERSEDED, world_job(&w, id)->checkpoints[i].iteration > 10);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 3);
	assert_int_equal(world_job(&w, id)->resume, 10);
	save(&w, id, 20);   /* written again */
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 4);
	assert_int_equal(world_job(&w, id)->resume, 20);
	world_done(&w);
}

static void never_still_recovers_from_its_own(void **state)
{
	struct world w;
	int64_t id = submit(&w, -2);

	world_found(&w, 500, true);   /* of another job */
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->resume, -1);
	save(&w, id, 10);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->resume, 10);
	world_done(&w);
}

static void keep_removes_what_this_job_wrote(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.keep = 2;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_found(&w, 5, true);   /* of an earlier job: never removed */
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->resume, 5);
	save(&w, id, 10);
	save(&w, id, 20);
	assert_int_equal(checkpoint_find(world_job(&w, id), 10)->state, CKPT_COMPLETE);
	w.no_scan = true;
	save(&w, id, 30);
	world_run(&w, 3 * S);
	assert_int_equal(checkpoint_find(world_job(&w, id), 10)->state, CKPT_DELETED);
	assert_true(checkpoint_removing(checkpoint_find(world_job(&w, id), 10)));
	assert_int_equal(w.scan.n_items, 4);
	w.no_scan = false;
	world_run(&w, 3 * S);
	assert_int_equal(w.scan.n_items, 3);
	assert_false(checkpoint_removing(checkpoint_find(world_job(&w, id), 10)));
	assert_int_equal(checkpoint_find(world_job(&w, id), 10)->state, CKPT_DELETED);
	save(&w, id, 40);
	world_run(&w, 2 * S);
	assert_int_equal(w.scan.n_items, 3);
	assert_int_equal(w.scan.items[0].iteration, 5);
	assert_int_equal(w.scan.items[1].iteration, 30);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->resume, 40);
	world_done(&w);
}

static void a_path_without_iteration(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);
	struct note *n;

	world_run(&w, 2 * S);
	n = world_note(&w, 0, id, NOTE_CHECKPOINT);
	n->path = mo_strdup("/ckpt/step-0042/");
	world_run(&w, S);
	assert_int_equal(state_newest_checkpoint(world_job(&w, id)), 42);
	world_done(&w);
}

static void the_ledger_is_bounded(void **state)
{
	struct world w;
	int64_t id = submit(&w, -1);

	world_run(&w, 2 * S);
	for (int64_t i = 0; i < MO_CHECKPOINTS_MAX + 10; i++)
		world_note(&w, 0, id, NOTE_CHECKPOINT)->iteration = i;
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->n_checkpoints, MO_CHECKPOINTS_MAX);
	assert_int_equal(state_newest_checkpoint(world_job(&w, id)), MO_CHECKPOINTS_MAX + 9);
	assert_int_equal(world_job(&w, id)->checkpoints[0].iteration, 10);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_job_resumes_from_what_lies_there),
		cmocka_unit_test(nothing_there_is_a_fresh_start),
		cmocka_unit_test(everything_damaged_waits),
		cmocka_unit_test(restart_from_0_is_a_spoken_fresh_start),
		cmocka_unit_test(a_named_one_that_is_missing_fails),
		cmocka_unit_test(unwritable_and_unreadable),
		cmocka_unit_test(recovery_takes_the_newest_complete),
		cmocka_unit_test(an_announced_one_counts_without_marker),
		cmocka_unit_test(lost_checkpoints_are_not_a_fresh_start),
		cmocka_unit_test(an_unfinished_first_save_is_no_loss),
		cmocka_unit_test(restart_from_takes_the_newest_at_most),
		cmocka_unit_test(an_announcement_without_a_number_is_ignored),
		cmocka_unit_test(what_the_user_went_back_behind_is_superseded),
		cmocka_unit_test(never_still_recovers_from_its_own),
		cmocka_unit_test(keep_removes_what_this_job_wrote),
		cmocka_unit_test(a_path_without_iteration),
		cmocka_unit_test(the_ledger_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
