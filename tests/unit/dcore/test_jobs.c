/* The table of transitions, a job's straight life, verbs, idempotency, planned stops,
 * completion. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <string.h>

#include "lib/model/limits.h"

static void every_state_and_trigger_has_a_row(void **state)
{
	for (int s = 0; s < _JOB_STATE_N; s++)
		for (int t = 0; t < _TRIGGER_N; t++) {
			bool always = false;

			for (size_t i = 0; i < n_job_rows; i++)
				if (job_rows[i].state == s && job_rows[i].trigger == t) {
					/* a row behind an unconditional one is never reached */
					assert_false(always);
					always = job_rows[i].guard == G_ALWAYS;
				}
			/* its four rows name every intent of a planned stop */
			if (s == JOB_STOPPING && t == T_STOPPED)
				continue;
			if (!always)
				fail_msg("%s x %s has no row that always holds", job_state_names[s],
					 job_trigger_names[t]);
		}
	for (size_t i = 0; i < n_job_rows; i++) {
		assert_true((job_rows[i].next == NEXT_REFUSE) == (job_rows[i].text != NULL));
		/* what is over stays so, but by a person's word; what is cancelled in any case */
		assert_true(
			!job_state_final(job_rows[i].state) || job_rows[i].next < 0 ||
			(job_rows[i].trigger == V_RESTART && job_rows[i].state != JOB_CANCELLED));
	}
}

static void runs_and_completes(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 4);
	id = world_submit_gpus(&w, 8);
	assert_int_equal(id, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	world_beat(&w, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->run.ranks[7].pid, 1007);
	assert_string_equal(world_job(&w, id)->run.ranks[7].node, "n1");
	assert_int_equal(world_job(&w, id)->run.ranks[7].local_rank, 3);
	for (int64_t i = 1; i <= 5; i++) {
		world_iteration(&w, 0, id, i);
		world_run(&w, S);
	}
	assert_int_equal(world_job(&w, id)->progress.iteration, 5);
	assert_int_equal(world_job(&w, id)->progress.n_samples, 5);
	for (int64_t r = 0; r < 8; r++)
		world_exit(&w, r < 4 ? 0 : 1, id, r, 0, 0);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_COMPLETED);
	assert_int_equal(world_job(&w, id)->n_steps, 0); /* forgotten by both */
	assert_int_equal(w.toys[0].n_steps, 0);
	assert_true(world_event_seen(&w, "job.submitted") && world_event_seen(&w, "job.started") &&
		    world_event_seen(&w, "job.running") && world_event_seen(&w, "rank.exited") &&
		    world_event_seen(&w, "job.completed"));
	world_done(&w);
}

static void launch_has_its_own_rank_range_only(void **state)
{
	struct world w;
	const struct launch *l;
	int64_t id;

	world_init(&w, 2, 4);
	id = world_submit_gpus(&w, 8);
	world_run(&w, S);
	l = w.toys[1].log[0].launch;
	assert_int_equal(w.toys[1].log[0].kind, CMD_LAUNCH);
	assert_int_equal(w.toys[1].log[0].epoch, 1);
	assert_int_equal(l->first_rank, 4);
	assert_int_equal(l->n_local, 4);
	assert_int_equal(l->world, 8);
	assert_int_equal(l->node_rank, 1);
	assert_int_equal(l->n_nodes, 2);
	assert_false(l->hold_ports);
	assert_true(w.toys[0].log[0].launch->hold_ports);
	assert_string_equal(l->master_addr, "10.0.0.0");
	assert_int_equal(l->master_port, 20000);
	assert_int_equal(l->resume, -1);
	assert_int_equal(world_count(&w, 1, CMD_LAUNCH), 1); /* not repeated once accepted */
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 2 * S);
	id = world_submit_gpus(&w, 2);
	world_run(&w, S);
	for (size_t i = 0; i < w.toys[0].n_log; i++)
		if (w.toys[0].log[i].kind == CMD_LAUNCH && w.toys[0].log[i].job == id) {
			assert_string_equal(w.toys[0].log[i].launch->master_addr, "127.0.0.1");
			assert_int_equal(w.toys[0].log[i].launch->master_port, 20004);
		}
	world_done(&w);
}

static void launch_is_repeated_until_accepted(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 4);
	w.no_launch = true;
	id = world_submit_gpus(&w, 4);
	world_run(&w, 3 * S);
	assert_true(world_count(&w, 0, CMD_LAUNCH) >= 3);
	assert_int_equal(world_job(&w, id)->state, JOB_STARTING);
	w.no_launch = false;
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_done(&w);
}

static void steps_decide_completion(void **state)
{
	for (int64_t done = 9; done <= 10; done++) {
		struct submit spec;
		struct world w;
		int64_t id;

		world_init(&w, 1, 2);
		world_recipe(&spec, 2);
		spec.recipe.steps = 10;
		id = world_submit(&w, &spec);
		mo_desc_done(&submit_desc, &spec);
		world_run(&w, S);
		for (int64_t i = 1; i <= done; i++)
			world_iteration(&w, 0, id, i);
		world_exit(&w, 0, id, 0, 0, 0);
		world_exit(&w, 0, id, 1, 0, 0);
		world_run(&w, S);
		assert_int_equal(world_job(&w, id)->state, done == 10 ? JOB_COMPLETED : JOB_FAILED);
		if (done == 9)
			assert_string_equal(world_job(&w, id)->reason, "ended early at 9 of 10");
		if (done == 9)
			world_next_has(&w, id, "give the steps that it makes");
		world_done(&w);
	}
}

/* `steps` is not where the program ends: that is said while it runs and at its end, and a pause is
 * no end. */
static void iterations_beyond_steps_are_reported(void **state)
{
	static const char said[] = "its program made iteration 12, and steps is 10";

	for (int pause = 0; pause < 2; pause++) {
		struct submit spec;
		struct world w;
		int64_t id;

		world_init(&w, 1, 1);
		world_recipe(&spec, 1);
		spec.recipe.steps = 10;
		id = world_submit(&w, &spec);
		mo_desc_done(&submit_desc, &spec);
		world_run(&w, S);
		for (int64_t i = 1; i <= 12; i++)
			world_iteration(&w, 0, id, i);
		world_beat(&w, 0);
		world_why_has(&w, id, said);
		if (pause)
			world_verb(&w, IN_PAUSE, id);
		world_exit(&w, 0, id, 0, 0, 0);
		world_run(&w, S);
		assert_int_equal(world_job(&w, id)->state, pause ? JOB_PAUSED : JOB_COMPLETED);
		assert_true(pause || mo_starts_with(world_job(&w, id)->reason, said));
		if (!pause)
			world_next_has(&w, id, "give its program {steps}");
		world_done(&w);
	}
}

static void no_iteration_counts_as_zero(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 1, 1);
	world_recipe(&spec, 1);
	spec.recipe.steps = 10;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	world_exit(&w, 0, id, 0, 0, 0);
	world_run(&w, S);
	assert_string_equal(world_job(&w, id)->reason, "ended early at 0 of 10");
	world_done(&w);
}

static void one_exit_0_waits_for_the_rest(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	id = world_submit_running(&w, 2, 1);
	world_exit(&w, 0, id, 1, 0, 0);
	world_run(&w, 299 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	w.no_kill = true;
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	assert_string_equal(world_job(&w, id)->failure.cause, "exit-wait");
	world_done(&w);
}

static void cancel_waits_for_proof(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	id = world_submit_running(&w, 4, 0);
	w.no_kill = true;
	world_verb(&w, IN_CANCEL, id);
	assert_int_equal(w.reply_status, 200);
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].kind, CMD_STOP);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].signal, SIGTERM);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].grace_us, 120 * S);
	world_step(&w,
		   &(struct core_input){ .type = IN_CANCEL,
					 .by.user = (char *)"ann",
					 .cancel = &(struct in_cancel){ .job = id, .now = true } });
	assert_int_equal(w.reply_status, 200);
	world_beat(&w, 0);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].kind, CMD_KILL);
	w.no_kill = false;
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING); /* n1 did not prove it yet */
	world_beat(&w, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	for (int verb = IN_CANCEL; verb <= IN_RESTART; verb++) {
		world_verb(&w, verb, id);
		assert_int_equal(w.reply_status, 409);
		assert_non_null(strstr(w.reply_text, "cancelled"));
	}
	world_done(&w);
}

static void stop_of_an_unseen_launch_is_a_kill(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	w.no_launch = true;
	id = world_submit_gpus(&w, 2);
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, id);
	world_beat(&w, 0);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].kind, CMD_FORGET);
	assert_true(world_count(&w, 0, CMD_KILL) >= 1);
	assert_int_equal(world_count(&w, 0, CMD_STOP), 0);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	world_done(&w);
}

static void pause_and_resume(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	id = world_submit_running(&w, 2, 0);
	world_verb(&w, IN_RESUME, id);
	assert_int_equal(w.reply_status, 409);
	world_verb(&w, IN_PAUSE, id);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_PAUSED);
	assert_int_equal(world_job(&w, id)->run.n_places, 0);
	world_run(&w, 100 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_PAUSED);
	world_verb(&w, IN_RESUME, id);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	assert_true(world_job(&w, id)->ledger[GPU_IDLE] >= 2 * 100 * S);
	world_done(&w);
}

static void restart_and_queue_verbs(void **state)
{
	struct world w;
	int64_t id, second;

	world_init(&w, 1, 2);
	id = world_submit_gpus(&w, 2);
	second = world_submit_gpus(&w, 2);
	world_run(&w, S);
	assert_int_equal(world_job(&w, second)->state, JOB_QUEUED);
	assert_string_equal(world_job(&w, second)->reason, "waits for 2 free GPUs");
	world_verb(&w, IN_RESTART, id);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	world_verb(&w, IN_PAUSE, second);
	assert_int_equal(world_job(&w, second)->state, JOB_PAUSED);
	world_verb(&w, IN_CANCEL, second);
	assert_int_equal(world_job(&w, second)->state, JOB_CANCELLED);
	world_step(&w, &(struct core_input){
			       .type = IN_RESTART,
			       .by.user = (char *)"ann",
			       .restart = &(struct in_restart){ .job = id, .from_iteration = 7 } });
	assert_int_equal(w.reply_status, 409);
	assert_non_null(strstr(w.reply_text, "checkpoint.dir"));
	world_done(&w);
}

static void time_limit_ends_it(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.time_limit_us = 100 * S;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, 99 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_run(&w, 4 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	assert_string_equal(world_job(&w, id)->reason, "time limit of 100 s reached");
	assert_true(world_count(&w, 0, CMD_STOP) >= 1);
	world_done(&w);
}

static void idempotent_submit(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	world_recipe(&spec, 1);
	spec.idempotency_key = mo_strdup("k1");
	spec.digest = mo_strdup("d1");
	id = world_submit(&w, &spec);
	assert_int_equal(w.reply_status, 201);
	assert_int_equal(world_submit(&w, &spec), id);
	assert_int_equal(w.reply_status, 200);
	mo_str_set(&spec.digest, "d2");
	assert_int_equal(world_submit(&w, &spec), -422);
	mo_str_set(&spec.user, "bob"); /* scope = caller */
	assert_true(world_submit(&w, &spec) == id + 1);
	mo_str_set(&spec.user, "ann");
	world_crash(&w); /* the key survives */
	assert_int_equal(world_submit(&w, &spec), -422);
	world_tick(&w, MO_IDEM_RETAINED_US + S);
	assert_true(world_submit(&w, &spec) == id + 2);
	mo_desc_done(&submit_desc, &spec);
	world_done(&w);
}

static void users_act_on_their_own_jobs(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 2);
	id = world_submit_gpus(&w, 1);
	world_step(&w, &(struct core_input){ .type = IN_CANCEL,
					     .by.user = (char *)"bob",
					     .cancel = &(struct in_cancel){ .job = id } });
	assert_int_equal(w.reply_status, 403);
	assert_int_equal(w.out.n_records, 0);
	world_step(&w, &(struct core_input){ .type = IN_CANCEL,
					     .by.user = (char *)"bob",
					     .cancel = &(struct in_cancel){ .job = 99 } });
	assert_int_equal(w.reply_status, 404);
	world_step(&w, &(struct core_input){ .type = IN_CANCEL,
					     .by.user = (char *)"ann",
					     .cancel = &(struct in_cancel){ .job = id } });
	assert_int_equal(w.reply_status, 200);
	world_done(&w);
}

static void a_crash_changes_nothing(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	id = world_submit_gpus(&w, 4);
	world_beat(&w, 0);
	world_crash(&w);
	assert_int_equal(core_state(w.core)->epoch, 2);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_iteration(&w, 0, id, 1);
	world_crash(&w);
	world_crash(&w);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->progress.iteration, 1);
	assert_int_equal(world_count(&w, 0, CMD_KILL) + world_count(&w, 1, CMD_KILL), 0);
	world_done(&w);
}

static void an_unreconciled_node_gets_no_work(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 2, 2);
	world_crash(&w);
	w.toys[0].deaf = true;
	id = world_submit_gpus(&w, 2);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	world_run(&w, 3 * S); /* until it is not waited for any more */
	assert_true(world_job(&w, id)->run.n_places > 0);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n1");
	world_done(&w);
}

static void rules_are_idempotent(void **state)
{
	struct world w;

	world_init(&w, 2, 2);
	world_submit_gpus(&w, 4);
	world_submit_gpus(&w, 9);
	world_run(&w, 2 * S);
	for (int i = 0; i < 3; i++) {
		world_step(&w, &(struct core_input){ .type = IN_TICK });
		assert_int_equal(w.out.n_records, 0);
	}
	world_done(&w);
}

static void too_many_jobs_are_refused(void **state)
{
	struct submit spec;
	struct core_out out = { 0 };
	struct core *core = core_new(&core_config_default);
	struct core_input e = {
		.type = IN_SUBMIT, .request = 1, .submit = &spec, .by.may_all = true
	};
	int last = 0;

	for (int i = 0; i <= MO_JOBS_ACTIVE_MAX; i++) {
		core_out_done(&out);
		world_recipe(&spec, 1);
		core_turn(core, &e, 1000 * S + i, &out);
		mo_desc_done(&submit_desc, &spec);
		for (size_t k = 0; k < out.n_effects; k++)
			if (out.effects[k].type == FX_REPLY)
				last = (int)out.effects[k].reply->status;
		assert_int_equal(last, i < MO_JOBS_ACTIVE_MAX ? 201 : 429);
	}
	core_out_done(&out);
	core_free(core);
}

static int submit_as(struct core *core, const struct submit *spec, const char *user, int64_t n)
{
	struct core_out out = { 0 };
	struct submit *copy = mo_desc_dup(&submit_desc, spec);
	struct core_input e = { .type = IN_SUBMIT, .request = 1, .submit = copy };
	int last = 0;

	mo_str_set(&copy->user, user);
	core_turn(core, &e, 1000 * S + n, &out);
	for (size_t k = 0; k < out.n_effects; k++)
		if (out.effects[k].type == FX_REPLY)
			last = (int)out.effects[k].reply->status;
	core_out_done(&out);
	mo_desc_free(&submit_desc, copy);
	return last;
}

/* However many one user submits, the next one finds half of the room that was there for him. */
static void one_user_leaves_room(void **state)
{
	struct submit spec;
	struct core *core = core_new(&core_config_default);
	const char *const users[] = { "ada", "bob", "eve" };
	int64_t room = MO_JOBS_ACTIVE_MAX, n = 0;

	world_recipe(&spec, 1);
	for (size_t u = 0; u < ELEMENTSOF(users); u++) {
		int64_t taken = 0;
		while (submit_as(core, &spec, users[u], n++) == 201)
			taken++;
		assert_int_equal(submit_as(core, &spec, users[u], n++), 429);
		assert_int_equal(taken, (room + 1) / 2);
		room -= taken;
	}
	assert_int_equal(submit_as(core, &spec, "zoe", n++), 201);
	core_free(core);
	mo_desc_done(&submit_desc, &spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_and_trigger_has_a_row),
		cmocka_unit_test(runs_and_completes),
		cmocka_unit_test(launch_has_its_own_rank_range_only),
		cmocka_unit_test(launch_is_repeated_until_accepted),
		cmocka_unit_test(steps_decide_completion),
		cmocka_unit_test(iterations_beyond_steps_are_reported),
		cmocka_unit_test(no_iteration_counts_as_zero),
		cmocka_unit_test(one_exit_0_waits_for_the_rest),
		cmocka_unit_test(cancel_waits_for_proof),
		cmocka_unit_test(stop_of_an_unseen_launch_is_a_kill),
		cmocka_unit_test(pause_and_resume),
		cmocka_unit_test(restart_and_queue_verbs),
		cmocka_unit_test(time_limit_ends_it),
		cmocka_unit_test(idempotent_submit),
		cmocka_unit_test(users_act_on_their_own_jobs),
		cmocka_unit_test(a_crash_changes_nothing),
		cmocka_unit_test(an_unreconciled_node_gets_no_work),
		cmocka_unit_test(rules_are_idempotent),
		cmocka_unit_test(too_many_jobs_are_refused),
		cmocka_unit_test(one_user_leaves_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
