/* What checkpoint.keep removes and what it never does, and the last scan of a job's checkpoints. */
#include "tests/unit/dcore/saver.h"

static void keep_leaves_the_chosen_one(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 2);
	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	o->w.no_kill = true;
	assert_int_equal(saver_restart(o, 10), 200);
	saver_save(o, 30); /* the ranks save once more before they stop */
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_STOPPING);
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
	o->w.no_kill = false;
	saver_run(o, 5);
	saver_resumed(o, 2, 10);
}

static void keep_removes_what_this_job_wrote(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 2);
	world_found(&o->w, 5, true); /* of an earlier job: never removed */
	saver_run(o, 2);
	assert_int_equal(saver_job(o)->run.resume, 5);
	saver_save(o, 10);
	saver_save(o, 20);
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
	o->w.no_scan = true;
	saver_save(o, 30);
	saver_run(o, 3);
	assert_int_equal(saver_state(o, 10), CKPT_DELETED);
	assert_true(checkpoint_removing(checkpoint_find(saver_job(o), 10)));
	assert_int_equal(o->w.scan.n_items, 4);
	o->w.no_scan = false;
	saver_run(o, 3);
	assert_int_equal(o->w.scan.n_items, 3);
	assert_false(checkpoint_removing(checkpoint_find(saver_job(o), 10)));
	assert_int_equal(saver_state(o, 10), CKPT_DELETED);
	saver_save(o, 40);
	saver_run(o, 2);
	assert_int_equal(o->w.scan.n_items, 3);
	assert_int_equal(o->w.scan.items[0].iteration, 5);
	assert_int_equal(o->w.scan.items[1].iteration, 30);
	saver_crash(o);
	assert_int_equal(saver_job(o)->run.resume, 40);
}

/* Nobody removes it, so it is not reported as deleted. */
static void keep_leaves_what_lies_elsewhere(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 1);
	saver_run(o, 2);
	saver_save(o, 10);
	mo_str_set(&o->w.scan.items[0].path, "/elsewhere/10");
	saver_crash(o);
	assert_string_equal(checkpoint_find(saver_job(o), 10)->path, "/elsewhere/10");
	saver_save(o, 20);
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
	assert_string_equal(checkpoint_find(saver_job(o), 10)->reason,
			    "outside checkpoint.dir: not removed by checkpoint.keep");
	saver_save(o, 30);
	assert_int_equal(saver_state(o, 20), CKPT_DELETED);
}

/* What was only announced may turn out torn: the verified one before it stays. */
static void keep_one_never_removes_the_only_verified(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 1);
	saver_run(o, 2);
	saver_save(o, 10);
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
	mo_str_set(&o->w.scan.error, "the helper was late");
	saver_save(o, 20);
	saver_run(o, 5);
	assert_int_equal(saver_state(o, 20), CKPT_COMPLETE);
	assert_string_equal(checkpoint_find(saver_job(o), 20)->reason,
			    "not verified: the helper was late");
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
	/* nor while the next one is being saved */
	world_note(&o->w, 0, o->id, NOTE_SAVING)->iteration = 30;
	saver_run(o, 5);
	assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
	mo_str_set(&o->w.scan.error, NULL);
	saver_save(o, 30);
	saver_run(o, 3);
	assert_int_equal(saver_state(o, 30), CKPT_VERIFIED);
	assert_int_equal(saver_state(o, 10), CKPT_DELETED);
	assert_int_equal(saver_state(o, 20), CKPT_DELETED);
}

/* A job that ends, however it ends, while its node has not removed yet: the last scan does it. */
static void what_was_to_be_removed_goes_at_the_end(void **state)
{
	struct saver *o = *state;

	for (int way = 0; way < 3; way++) {
		saver_again(o, -1, 1);
		saver_run(o, 2);
		saver_save(o, 10);
		o->w.no_scan = way < 2;
		o->w.prune_fails = way == 2;
		saver_save(o, 20);
		saver_run(o, 2);
		assert_true(checkpoint_removing(checkpoint_find(saver_job(o), 10)));
		if (way != 1) {
			world_exit(&o->w, 0, o->id, 0, 0, 0);
			world_exit(&o->w, 0, o->id, 1, 0, 0);
		} else {
			world_verb(&o->w, IN_CANCEL, o->id);
		}
		saver_run(o, 5);
		assert_true(job_state_final(saver_job(o)->state));
		world_crash(&o->w);
		world_hello(&o->w, 0);
		o->w.no_scan = false;
		saver_run(o, 5);
		assert_false(checkpoint_any_removing(saver_job(o)));
		if (way < 2) {
			assert_int_equal(saver_state(o, 10), CKPT_DELETED);
			assert_string_equal(checkpoint_find(saver_job(o), 10)->reason,
					    "checkpoint.keep held newer ones");
			assert_int_equal(o->w.scan.n_items, 1);
		} else {
			assert_int_equal(saver_state(o, 10), CKPT_VERIFIED);
			assert_string_equal(checkpoint_find(saver_job(o), 10)->reason,
					    "it could not be removed, though checkpoint.keep holds "
					    "newer ones");
		}
		assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	}
}

/* Nothing goes wrong, so no attempt follows that would scan: the end does. */
static void a_completed_job_verifies_its_last(void **state)
{
	struct saver *o = *state;
	size_t scans;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	o->w.scan.items[0].complete = false;
	o->w.scan.items[0].bytes = 0;
	scans = world_count(&o->w, 0, CMD_SCAN);
	assert_int_equal(saver_state(o, 20), CKPT_COMPLETE);
	o->w.no_scan = true;
	world_exit(&o->w, 0, o->id, 0, 0, 0);
	world_exit(&o->w, 0, o->id, 1, 0, 0);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_COMPLETED); /* it does not wait for that */
	assert_int_equal(saver_state(o, 20), CKPT_COMPLETE);
	world_crash(&o->w);
	world_hello(&o->w, 0);
	o->w.no_scan = false;
	saver_run(o, 3);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	assert_int_equal(saver_state(o, 10), CKPT_TORN);
	assert_true(world_event_seen(&o->w, "checkpoint.verified"));
	scans = world_count(&o->w, 0, CMD_SCAN) - scans;
	saver_run(o, 10);
	assert_true(scans >= 1);
	scans = world_count(&o->w, 0, CMD_SCAN);
	saver_run(o, 10);
	assert_int_equal(world_count(&o->w, 0, CMD_SCAN), scans); /* once */
}

static bool obeyed(const struct saver *o, int order)
{
	const struct toy *t = &o->w.toys[0];

	for (size_t i = 0; i < t->n_log; i++)
		if (t->log[i].kind == CMD_SCAN && t->log[i].order == order)
			return true;
	return false;
}

/* A scan, three verifications, a removal and the last scan. */
static void looked_at_in_each_way(struct saver *o)
{
	saver_run(o, 2);
	assert_int_equal(saver_job(o)->attempt, 1);
	saver_save(o, 10);
	saver_save(o, 20);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	saver_save(o, 30);
	saver_run(o, 3);
	assert_int_equal(saver_state(o, 10), CKPT_DELETED);
	assert_false(checkpoint_removing(checkpoint_find(saver_job(o), 10)));
	o->w.verify = false;
	saver_save(o, 40);
	o->w.verify = true;
	world_exit(&o->w, 0, o->id, 0, 0, 0);
	world_exit(&o->w, 0, o->id, 1, 0, 0);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_COMPLETED);
	assert_int_equal(saver_state(o, 40), CKPT_VERIFIED);
	assert_false(saver_job(o)->scan.at_end);
}

static void each_look_is_an_order_of_its_own(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 2);
	looked_at_in_each_way(o);
	for (int order = 0; order < _ORDER_N; order++)
		assert_true(obeyed(o, order));
}

static void agents_of_before_know_orders_by_number(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 2);
	o->w.old_agents = true;
	looked_at_in_each_way(o);
	for (int order = 0; order < _ORDER_N; order++)
		assert_false(obeyed(o, order));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)
	const struct CMUnitTest tests[] = {
		T(each_look_is_an_order_of_its_own),
		T(agents_of_before_know_orders_by_number),
		T(keep_leaves_the_chosen_one),
		T(keep_removes_what_this_job_wrote),
		T(keep_leaves_what_lies_elsewhere),
		T(keep_one_never_removes_the_only_verified),
		T(what_was_to_be_removed_goes_at_the_end),
		T(a_completed_job_verifies_its_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
