/* moectl restart of a job that is over: the same job goes on, with its id, history and ledger; and
 * what it is told where it cannot. */
#include "tests/unit/dcore/saver.h"

#include <signal.h>
#include <string.h>

static int64_t total(const struct job *j)
{
	int64_t sum = 0;

	for (size_t i = 0; i < j->n_ledger; i++)
		sum += j->ledger[i];
	return sum;
}

/* Saved at 10 and 20; then it failed the same way until the job did. */
static void failed(struct saver *o)
{
	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	for (int i = 0; i < 3; i++) {
		world_iteration(&o->w, 0, o->id, 25);
		saver_crash(o);
	}
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_int_equal(saver_job(o)->attempt, 3);
}

static void refused(struct saver *o, int64_t from, const char *text)
{
	assert_int_equal(saver_restart(o, from), 409);
	if (!strstr(o->w.reply_text, text))
		fail_msg("'%s' lacks '%s'", o->w.reply_text, text);
}

static void a_failed_job_goes_on_by_its_id(void **state)
{
	struct saver *o = *state;
	int64_t before, restarts;

	failed(o);
	saver_run(o, 1000);
	before = total(saver_job(o));
	restarts = saver_job(o)->restarts;
	assert_int_equal(saver_restart(o, MO_NONE), 200);
	/* once more changes nothing */
	assert_int_equal(saver_restart(o, MO_NONE), 200);
	saver_run(o, 3);
	saver_resumed(o, 4, 20);
	assert_int_equal(saver_job(o)->ended_at, MO_NONE);
	assert_int_equal(saver_job(o)->n_incidents, 3);
	assert_int_equal(saver_job(o)->restarts, restarts);
	/* the time between is nobody's */
	assert_in_range(total(saver_job(o)) - before, 1, 2 * 5 * S);
	/* a person dealt with it: the count of equal failures begins anew */
	world_iteration(&o->w, 0, o->id, 25);
	saver_crash(o);
	saver_resumed(o, 5, 20);
}

static void from_any_checkpoint_that_it_has(void **state)
{
	struct saver *o = *state;

	failed(o);
	refused(o, 5, "no complete checkpoint at or before it is left");
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_int_equal(saver_restart(o, 10), 200);
	world_crash(&o->w); /* it is stored */
	saver_run(o, 5);
	saver_resumed(o, 4, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
}

static void a_completed_one_only_from_a_checkpoint(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	for (int64_t rank = 0; rank < 2; rank++)
		world_exit(&o->w, 0, o->id, rank, 0, 0);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_COMPLETED);
	refused(o, MO_NONE, "name the checkpoint that it is to train again from (--from N)");
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	saver_resumed(o, 2, 10);
	assert_int_equal(saver_job(o)->state, JOB_RUNNING);
}

static void a_cancelled_one_never(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	world_verb(&o->w, IN_CANCEL, o->id);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_CANCELLED);
	refused(o, 10, "a cancelled job never starts again");
}

static void not_while_its_directory_is_anothers(void **state)
{
	struct saver *o = *state;
	struct submit spec;
	int64_t second;

	failed(o);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	second = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	saver_run(o, 2);
	refused(o, MO_NONE, "its checkpoint.dir is that of j-2 (running)");
	world_verb(&o->w, IN_CANCEL, second);
	saver_run(o, 3);
	assert_int_equal(saver_restart(o, MO_NONE), 200);
}

static void its_time_limit_is_that_of_all_its_attempts(void **state)
{
	struct saver *o = *state;

	saver_limited(o, 100 * S);
	failed(o);
	saver_run(o, 1000);
	assert_int_equal(saver_restart(o, MO_NONE), 200);
	saver_run(o, 20);
	assert_int_equal(saver_job(o)->state, JOB_RUNNING);
	saver_run(o, 100);
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_string_equal(saver_job(o)->reason, "time limit of 100 s reached");
	refused(o, MO_NONE, "its time limit is used up");
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_failed_job_goes_on_by_its_id),
		T(from_any_checkpoint_that_it_has),
		T(a_completed_one_only_from_a_checkpoint),
		T(a_cancelled_one_never),
		T(not_while_its_directory_is_anothers),
		T(its_time_limit_is_that_of_all_its_attempts),
	};

	return cmocka_run_group_tests_name("dcore/again", tests, NULL, NULL);
}
