/* A state that was put back from a backup: numbers leap, what lives is adopted, what is not known
 * is kept until somebody decides. And an old copy that agents know better. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/state/incarnation.h"
#include "daemon/core/update/update_incarnation.h"

static void epochs_only_rise(void **state)
{
	int64_t first = incarnation_epoch(0, INCARNATION_ZERO_US + 100 * S),
		again = incarnation_epoch(first + 7, INCARNATION_ZERO_US + 100 * S);
	_cleanup_(mo_freep) char *old = epoch_text(12), *new = epoch_text(first + 3);

	assert_int_equal(first, 100 * EPOCH_STARTS);
	/* twice in a second */
	assert_true(again > first + 7 && again % EPOCH_STARTS == 0);
	/* the clock went back */
	assert_true(incarnation_epoch(first, INCARNATION_ZERO_US + 50 * S) > first);
	assert_true(incarnation_epoch(41, 0) > 41); /* 1970 */
	assert_string_equal(old, "epoch 12");
	assert_string_equal(new, "start 3 of the incarnation of 2020-01-01T00:01:40.000Z");
}

static void later(struct world *w, size_t toy, int64_t job, int64_t attempt)
{
	*MO_GROW(w->toys[toy].steps, w->toys[toy].n_steps) =
		(struct toy_step){ .job = job, .attempt = attempt, .n_ranks = 1 };
}

static void resolve(struct world *w, int64_t job, int64_t attempt, const char *how)
{
	world_step(w, &(struct core_input){
			      .type = IN_RESOLVE,
			      .by = { .user = (char *)"op", .may_all = true },
			      .resolve = &(struct in_resolve){
				      .job = job, .attempt = attempt, .how = (char *)how } });
}

static void what_the_backup_knows_is_adopted(void **state)
{
	struct world w;
	int64_t id, epoch;

	world_init(&w, 2, 2);
	id = world_submit_gpus(&w, 2);
	world_run(&w, 3 * S);
	world_iteration(&w, 0, id, 5);
	world_run(&w, S);
	epoch = core_state(w.core)->epoch;
	world_restored(&w);
	assert_true(core_state(w.core)->epoch > epoch + EPOCH_STARTS / 2);
	assert_true(world_event_seen(&w, "controller.restored"));
	for (size_t i = 0; i < 2; i++)
		world_hello(&w, i);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	id = world_submit_gpus(&w, 2);
	assert_true(id > RESTORED_JOBS);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_false(world_event_seen(&w, "step.unknown"));
	world_done(&w);
}

static bool waits_for(const struct world *w, int64_t id, const char *what)
{
	const char *reason = world_job(w, id)->reason;

	if (!reason || !strstr(reason, what))
		return false;
	world_waits(w, id, mo_starts_with(reason, "needs ") ? WAITING_NODES : WAITING_RESTORED,
		    reason, reason);
	return true;
}

/* In the backup it was queued; in truth its first attempt, and a job that the backup does not know,
 * run on n1. */
static void what_it_does_not_know_waits_for_a_decision(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	world_node_verb(&w, IN_DRAIN, 0, "idle");
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	id = world_submit_gpus(&w, 2);
	world_restored(&w);
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_node_verb(&w, IN_UNDRAIN, 1, NULL);
	world_hello(&w, 0);
	w.toys[1].deaf = true;
	world_run(&w, 60 * S);
	assert_true(waits_for(&w, id, "n1 was not heard since"));
	w.toys[1].deaf = false;
	later(&w, 1, id, 1);
	later(&w, 1, 77, 1);
	world_hello(&w, 1);
	world_run(&w, 5 * S);
	assert_true(waits_for(&w, id, "j-1.a1 on n1"));
	assert_int_equal(world_node(&w, 1)->strays.n_steps, 2);
	world_crash(&w); /* a start forgets neither */
	world_hello(&w, 0);
	world_run(&w, 5 * S);
	assert_true(waits_for(&w, id, "j-1.a1 on n1"));
	world_hello(&w, 1);
	world_run(&w, 5 * S);
	assert_int_equal(world_count(&w, 1, CMD_KILL), 0);
	resolve(&w, 78, 1, "kill");
	assert_int_equal(w.reply_status, 409);
	resolve(&w, id, 1, "gone");
	assert_int_equal(w.reply_status, 409);
	resolve(&w, id, 1, "nonsense");
	assert_int_equal(w.reply_status, 422);
	resolve(&w, id, 1, "kill");
	assert_int_equal(w.reply_status, 200);
	world_run(&w, 5 * S);
	assert_true(world_count(&w, 1, CMD_KILL) > 0);
	w.toys[1].n_steps = 1;       /* it was killed and forgotten; */
	w.toys[1].steps[0].job = 77; /* the other lives on */
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_true(world_job(&w, id)->attempt > RESTORED_ATTEMPTS);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n0");
	assert_true(world_node(&w, 1)->strays.any);
	world_done(&w);
}

static void a_missing_step_goes_by_a_word_or_by_its_successor(void **state)
{
	struct world w;
	int64_t id, attempt;

	world_init(&w, 1, 2);
	id = world_submit_gpus(&w, 2);
	world_run(&w, 3 * S);
	world_restored(&w);
	/* it ended after the backup, and was forgotten */
	world_lose_spool(&w, 0);
	world_hello(&w, 0);
	world_run(&w, 5 * S);
	assert_true(world_event_seen(&w, "step.missing"));
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	resolve(&w, id, 1, "gone");
	assert_int_equal(w.reply_status, 200);
	world_run(&w, 60 * S);
	attempt = world_job(&w, id)->attempt;
	assert_true(attempt > RESTORED_ATTEMPTS);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	/* once more; this time a later attempt runs there */
	world_restored(&w);
	world_lose_spool(&w, 0);
	later(&w, 0, id, attempt + 1);
	world_hello(&w, 0);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	_cleanup_(mo_freep) char *name = mo_printf("j-1.a%lld on n0", (long long)attempt + 1);
	assert_true(waits_for(&w, id, name));
	world_lose_spool(&w, 0);
	world_run(&w, 60 * S);
	assert_true(world_job(&w, id)->attempt > 2 * RESTORED_ATTEMPTS);
	world_done(&w);
}

/* What the second incarnation of a backup may number is above all that the first had. */
static void restored_at(struct core *c, const struct state *backup, int64_t seconds)
{
	struct state copy;
	struct record r;

	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, backup);
	core_load(c, &copy);
	record_init(&r, REC_RESTORED);
	r.time = backup->time;
	r.restored->epoch = incarnation_epoch(backup->epoch, INCARNATION_ZERO_US + seconds * S);
	r.restored->from_backup = true;
	r.restored->backup_at = r.time;
	assert_int_equal(core_update(c, &r), 0);
	mo_desc_done(&record_desc, &r);
}

static void a_backup_that_is_restored_again(void **state)
{
	_cleanup_(core_freep) struct core *first = core_new(&core_config_default),
					  *second = core_new(&core_config_default);
	const struct state *a = core_state(first), *b = core_state(second);
	struct state old, newer;
	struct world w;

	world_init(&w, 1, 2);
	world_submit_gpus(&w, 2);
	mo_desc_init(&state_desc, &old);
	mo_desc_copy(&state_desc, &old, core_state(w.core));
	restored_at(first, &old, 100000);
	mo_desc_init(&state_desc, &newer);
	mo_desc_copy(&state_desc, &newer, a);
	restored_at(second, &old, 100060);
	assert_true(b->next_job >= a->next_job + 60 * RESTORED_JOBS_S);
	assert_true(b->next_event_seq >= a->next_event_seq + 60 * RESTORED_EVENTS_S);
	assert_true(job_next_attempt(b->jobs[0]) >=
		    job_next_attempt(a->jobs[0]) + 60 * RESTORED_ATTEMPTS_S);
	/* one of the incarnation that was given up */
	restored_at(first, &newer, 100120);
	assert_true(a->next_job > b->next_job);
	mo_desc_done(&state_desc, &old);
	mo_desc_done(&state_desc, &newer);
	world_done(&w);
}

/* Its launch never came; after the backup another job got the GPUs. */
static void no_launch_beside_an_unknown_step(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	w.no_launch = true;
	id = world_submit_gpus(&w, 2);
	world_restored(&w);
	w.no_launch = false;
	later(&w, 0, 77, 1);
	world_hello(&w, 0);
	world_run(&w, 60 * S);
	assert_int_equal(world_count(&w, 0, CMD_LAUNCH), 0);
	world_why_has(&w, id, "it holds a step that this controller never stored");
	world_lose_spool(&w, 0);
	world_run(&w, 5 * S);
	assert_true(world_count(&w, 0, CMD_LAUNCH) > 0);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

/* It trained on after the backup, and ended: what it saved meanwhile is newer than anything that
 * the backup heard of. */
static void what_it_saved_since_is_its_own(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, 3 * S);
	for (int64_t i = 1; i <= 5; i++)
		world_iteration(&w, 0, id, i);
	world_run(&w, S);
	world_restored(&w);
	world_found(&w, 50, true);
	/* its agent forgot it, and remembers the number */
	mo_str_set(&world_note(&w, 0, id, NOTE_REFUSED)->cause, "stale");
	world_note(&w, 0, id, NOTE_GONE);
	world_toy_step(&w, 0, id)->gone = true;
	world_hello(&w, 0);
	world_run(&w, 90 * S);
	assert_true(world_job(&w, id)->attempt > 1);
	assert_int_equal(world_job(&w, id)->run.resume, 50);
	world_done(&w);
}

/* A supervisor that hung when the backup was made: its step is missing all the same. */
static void what_was_hung_goes_missing(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	id = world_submit_gpus(&w, 2);
	world_run(&w, 3 * S);
	w.toys[0].steps[0].hung = true;
	world_run(&w, 3 * S);
	assert_true(world_event_seen(&w, "step.hung"));
	world_restored(&w);
	world_lose_spool(&w, 0);
	world_hello(&w, 0);
	world_run(&w, 5 * S);
	assert_true(world_event_seen(&w, "step.missing"));
	resolve(&w, id, 1, "gone");
	assert_int_equal(w.reply_status, 200);
	world_done(&w);
}

/* Of a backup put back before this one: there the job had not ended, and got another attempt. */
static void an_attempt_of_a_job_that_is_final_is_forgotten_when_it_is_gone(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	id = world_submit_running(&w, 2, 3);
	world_exit(&w, 0, id, 0, 0, 0);
	world_exit(&w, 0, id, 1, 0, 0);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_COMPLETED);
	world_restored(&w);
	world_hello(&w, 0);
	later(&w, 1, id, 2069);
	world_hello(&w, 1);
	world_run(&w, 5 * S);
	assert_int_equal(world_count(&w, 1, CMD_FORGET), 0); /* it lives */
	world_toy_step(&w, 1, id)->gone = true;
	world_run(&w, 5 * S);
	assert_int_equal(world_count(&w, 1, CMD_FORGET), 1);
	assert_false(world_node(&w, 1)->strays.any);
	world_done(&w);
}

static void an_old_copy_gets_no_agents(void **state)
{
	struct world w;
	const struct node *n;

	world_init(&w, 1, 2);
	n = world_node(&w, 0);
	struct agent_sync s = { .node = w.toys[0].name,
				.boot_id = n->boot.id,
				.instance = n->agent.instance,
				.epoch = core_state(w.core)->epoch + 5,
				.beat = ++w.toys[0].beat };
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &s } });
	assert_int_equal(w.reply_status, 409);
	assert_true(world_event_seen(&w, "controller.stale"));
	assert_true(waits_for(&w, world_submit_gpus(&w, 2), "needs 2 GPUs"));
	world_restored(&w);
	world_hello(&w, 0);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, 1)->state, JOB_RUNNING);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epochs_only_rise),
		cmocka_unit_test(what_the_backup_knows_is_adopted),
		cmocka_unit_test(what_it_does_not_know_waits_for_a_decision),
		cmocka_unit_test(a_missing_step_goes_by_a_word_or_by_its_successor),
		cmocka_unit_test(a_backup_that_is_restored_again),
		cmocka_unit_test(what_was_hung_goes_missing),
		cmocka_unit_test(what_it_saved_since_is_its_own),
		cmocka_unit_test(no_launch_beside_an_unknown_step),
		cmocka_unit_test(an_old_copy_gets_no_agents),
		cmocka_unit_test(an_attempt_of_a_job_that_is_final_is_forgotten_when_it_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
