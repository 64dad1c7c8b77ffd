/* Nodes: silence is not death, proof is; hello, drains, fences, steps nobody knows. */
#include "tests/unit/dcore/world_inner.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/model/limits.h"

static int64_t running(struct world *w, size_t nodes, int64_t gpus, int64_t ranks)
{
	world_init(w, nodes, gpus);
	return world_submit_running(w, ranks, 0);
}

static void silence_makes_suspect_then_down(void **state)
{
	struct world w;

	world_init(&w, 2, 1);
	world_run(&w, S);
	w.toys[1].deaf = true;
	world_run(&w, core_config_default.suspect_us - S);
	assert_int_equal(world_node(&w, 1)->state, NODE_UP);
	world_run(&w, S);
	assert_int_equal(world_node(&w, 1)->state, NODE_SUSPECT);
	world_run(&w, 10 * S);
	assert_int_equal(world_node(&w, 1)->state, NODE_DOWN);
	assert_true(mo_starts_with(world_node(&w, 1)->reason, "not heard since ") &&
		    strchr(world_node(&w, 1)->reason, 'Z'));
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	w.toys[1].deaf = false;
	world_beat(&w, 1);
	assert_int_equal(world_node(&w, 1)->state, NODE_UP);
	world_done(&w);
}

/* Its answer was lost, and it was said again. */
static void a_hello_that_says_nothing_new_is_no_record(void **state)
{
	struct world w;

	world_init(&w, 2, 1);
	assert_true(w.out.n_records > 0);
	world_hello(&w, 1);
	assert_int_equal(w.out.n_records, 0);
	assert_int_equal(w.out.effects[0].type, FX_WELCOME);
	w.toys[1].gpus = 2;
	world_hello(&w, 1);
	assert_int_equal(w.out.records[0].type, REC_NODE);
	assert_int_equal(world_node(&w, 1)->info.n_gpus, 2);
	world_crash(&w);
	world_hello(&w, 1); /* to this controller it is new */
	assert_true(world_node(&w, 1)->agent.reconciled);
	world_done(&w);
}

/* In the same boot, which alone is no reason to look at the queue. */
static void a_new_agent_that_has_more_gpus_is_given_work(void **state)
{
	struct world w;
	int64_t id;

	world_init(&w, 1, 1);
	id = world_submit_gpus(&w, 2);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->run.n_places, 0);
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "again");
	w.toys[0].beat = 0;
	w.toys[0].gpus = 2;
	world_hello(&w, 0);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->run.n_places, 1);
	world_done(&w);
}

static void a_late_controller_blames_nobody(void **state)
{
	struct world w;

	world_init(&w, 2, 1);
	world_run(&w, S);
	w.now += 60 * S;
	world_step(&w, &(struct core_input){ .type = IN_LATE,
					     .late = &(struct in_late){ .late_us = 60 * S } });
	world_step(&w, &(struct core_input){ .type = IN_TICK });
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	world_crash(&w);
	w.now += 1000 * S; /* nobody could be heard while there was no controller */
	world_crash(&w);
	world_step(&w, &(struct core_input){ .type = IN_TICK });
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	world_done(&w);
}

/* Agents gave up their requests while the controller stood still: who was up has a full period
 * again; who was silent before that does not get younger. */
static void after_a_long_standstill_all_have_a_full_period(void **state)
{
	struct world w;

	world_init(&w, 2, 1);
	world_run(&w, S);
	w.toys[1].deaf = true;
	world_run(&w, 5 * S);
	assert_int_equal(world_node(&w, 1)->state, NODE_SUSPECT);
	w.toys[0].deaf = true;
	world_run(&w, 3 * S / 2);
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	w.now += 60 * S;
	world_step(&w, &(struct core_input){ .type = IN_LATE,
					     .late = &(struct in_late){ .late_us = 60 * S } });
	world_run(&w, 2 * S);
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	assert_int_equal(world_node(&w, 1)->state, NODE_SUSPECT);
	world_run(&w, 2 * S);
	assert_int_equal(world_node(&w, 0)->state, NODE_SUSPECT);
	assert_int_equal(world_node(&w, 1)->state, NODE_DOWN);
	world_done(&w);
}

/* However long each stall is, as long as agents can be heard after it at once. */
static void a_stuttering_controller_still_sees_silence(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	world_run(&w, S);
	w.toys[0].deaf = true;
	for (int i = 0; i < 30 && world_node(&w, 0)->state != NODE_DOWN; i++) {
		w.now += 5 * S;
		world_step(&w,
			   &(struct core_input){ .type = IN_LATE,
						 .late = &(struct in_late){ .late_us = 5 * S } });
		world_run(&w, S);
	}
	assert_int_equal(world_node(&w, 0)->state, NODE_DOWN);
	world_done(&w);
}

static void nothing_restarts_on_silence(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4);

	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	w.toys[1].deaf = true;
	world_run(&w, 3600 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	assert_true(world_job(&w, id)->failure.waiting_node);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_job(&w, id)->run.ranks[2].state, RANK_LOST);
	assert_int_equal(world_count(&w, 0, CMD_KILL) + world_count(&w, 0, CMD_STOP), 0);
	assert_non_null(strstr(world_job(&w, id)->reason, "moectl fence n1 --confirmed"));
	w.toys[1].deaf = false;
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	assert_int_equal(world_job(&w, id)->run.ranks[2].state, RANK_RUNNING);
	world_done(&w);
}

static void an_advancing_iteration_disproves_it(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4), i = 0;

	w.toys[1].deaf = true;
	for (; i < 60; i++) {
		world_iteration(&w, 0, id, i + 1);
		world_run(&w, S);
		assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	}
	assert_int_equal(world_node(&w, 1)->state, NODE_DOWN);
	world_run(&w, 8 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_run(&w, 4 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING); /* it stands still */
	world_iteration(&w, 0, id, i + 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING); /* it moves again */
	world_done(&w);
}

static void a_new_boot_id_is_proof(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4);

	w.toys[1].deaf = true;
	world_run(&w, 30 * S);
	world_reboot(&w, 1);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	/* a hello may be a late copy: the first beat makes it true */
	assert_false(world_job(&w, id)->failure.decided);
	w.no_launch = true;
	world_beat(&w, 1);
	assert_true(world_job(&w, id)->failure.decided);
	w.no_launch = false;
	assert_string_equal(world_job(&w, id)->failure.cause, "node-lost");
	assert_int_equal(world_job(&w, id)->attempt, 1);
	w.toys[1].deaf = false;
	world_run(&w, 2 * S);
	assert_true(world_count(&w, 0, CMD_KILL) >= 1);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 1);
	assert_string_equal(world_job(&w, id)->incidents[0].class, "node_fault");
	world_done(&w);
}

static void a_fence_is_proof(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, 2, 4);

	world_node_verb(&w, IN_FENCE, 1, NULL);
	assert_int_equal(w.reply_status, 409); /* it is up */
	w.toys[1].deaf = true;
	world_run(&w, 30 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_node_verb(&w, IN_FENCE, 1, NULL);
	assert_int_equal(w.reply_status, 200);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->run.places[1].node, "n2");
	/* the node was not powered off after all: what runs there is killed, and until then it gets
	 * no work */
	w.no_kill = true;
	w.toys[1].deaf = false;
	world_run(&w, 2 * S);
	assert_int_equal(w.toys[1].log[w.toys[1].n_log - 1].kind, CMD_KILL);
	assert_true(world_submit_gpus(&w, 2) == 2);
	assert_int_equal(world_job(&w, 2)->state, JOB_QUEUED);
	w.no_kill = false;
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, 2)->state, JOB_RUNNING);
	assert_string_equal(world_job(&w, 2)->run.places[0].node, "n1");
	world_done(&w);
}

/* Said of one boot, carried out when the node is in the next: the ranks that run there now were not
 * meant. */
static void a_fence_is_of_one_boot(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, 2, 4);
	struct in_fence fenced = { .node = (char *)"n1", .boot_seen = (char *)"boot-before" };
	struct core_input e = { .type = IN_FENCE,
				.by = { .user = (char *)"op", .may_all = true },
				.fence = &fenced };

	w.toys[1].deaf = true;
	world_run(&w, 30 * S);
	world_step(&w, &e);
	assert_int_equal(w.reply_status, 409);
	assert_non_null(strstr(w.reply_text, "it is in boot boot-n1 now, not in boot-before"));
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_false(world_event_seen(&w, "node.fenced"));
	fenced.boot_seen = (char *)"boot-n1";
	world_step(&w, &e);
	assert_int_equal(w.reply_status, 200);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

static void one_name_is_one_machine(void **state)
{
	struct world w;

	running(&w, 2, 2, 4);
	snprintf(w.toys[1].boot, sizeof(w.toys[1].boot), "%s", "other");
	snprintf(w.toys[1].instance, sizeof(w.toys[1].instance), "%s", "other");
	w.toys[1].beat = 0;
	world_hello(&w, 1);
	assert_int_equal(w.reply_status, 409);
	assert_non_null(strstr(w.reply_text, "another live agent"));
	/* once the first is silent for that long, it is no refusal any more */
	assert_in_range(w.reply_after_s, 1, 3);
	assert_int_equal(world_job(&w, 1)->state, JOB_RUNNING);
	world_tick(&w, 5 * S);
	world_hello(&w, 1);
	assert_int_equal(w.reply_status, 0);
	assert_string_equal(world_node(&w, 1)->boot.id, "boot-n1");
	world_beat(&w, 1);
	assert_string_equal(world_node(&w, 1)->boot.id, "other");
	world_tick(&w, 5 * S);
	/* a boot that was replaced cannot come back */
	snprintf(w.toys[1].boot, sizeof(w.toys[1].boot), "%s", "boot-n1");
	world_hello(&w, 1);
	assert_int_equal(w.reply_status, 409);
	world_done(&w);
}

static void agents_restart_under_the_same_boot(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4);

	snprintf(w.toys[1].instance, sizeof(w.toys[1].instance), "%s", "second");
	w.toys[1].beat = 0;
	world_run(&w, 5 * S); /* its first sync is refused, it says hello */
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_string_equal(world_node(&w, 1)->agent.instance, "second");
	world_done(&w);
}

static void a_step_the_agent_lost_is_not_dead(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4);

	world_lose_spool(&w, 1);
	world_run(&w, 600 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_true(step_find(world_job(&w, id), 1, "n1")->hung);
	assert_true(world_event_seen(&w, "step.missing"));
	assert_false(world_event_seen(&w, "step.hung")); /* another trouble, another remedy */
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 60 * S);
	/* "nothing was started" from an agent that forgot is no proof */
	assert_int_equal(world_job(&w, id)->state, JOB_STOPPING);
	w.toys[1].deaf = true;
	world_run(&w, 60 * S);
	world_node_verb(&w, IN_FENCE, 1, NULL);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	world_done(&w);
}

static void a_hung_supervisor_is_reported_not_killed(void **state)
{
	struct world w;
	struct agent_sync sync;
	int64_t id = running(&w, 1, 2, 2);

	for (int hung = 1; hung >= 0; hung--) {
		mo_desc_init(&agent_sync_desc, &sync);
		sync.node = mo_strdup("n0");
		sync.boot_id = mo_strdup(w.toys[0].boot);
		sync.instance = mo_strdup(w.toys[0].instance);
		sync.epoch = core_state(w.core)->epoch;
		sync.beat = ++w.toys[0].beat;
		*MO_ADD(&sync, steps, &step_report_desc) = (struct step_report){
			.job = id, .attempt = 1, .state = hung ? STEP_HUNG : STEP_RUNNING
		};
		world_step(&w,
			   &(struct core_input){ .type = IN_SYNC,
						 .sync = &(struct in_sync){ .message = &sync } });
		mo_desc_done(&agent_sync_desc, &sync);
		assert_int_equal(step_find(world_job(&w, id), 1, "n0")->hung, hung);
		assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	}
	world_done(&w);
}

/* A message of n0 with this beat, and one step or none. */
static void reports(struct world *w, int type, int64_t beat, const struct step_report *step)
{
	struct agent_sync sync;

	toy_sync(w, &w->toys[0], &sync);
	sync.beat = beat;
	if (step)
		*MO_ADD(&sync, steps, &step_report_desc) = *step;
	world_step(w, &(struct core_input){ .type = type,
					    .sync = &(struct in_sync){ .message = &sync } });
	mo_desc_done(&agent_sync_desc, &sync);
}

static void a_sync_sent_before_urgent_notes_proves_no_absence(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2), beat = w.toys[0].beat + 1;
	const struct step_report runs = {
		.job = id, .attempt = 1, .state = STEP_RUNNING, .written = 3
	};

	reports(&w, IN_URGENT, beat, &runs);
	reports(&w, IN_SYNC, beat, NULL); /* it was late */
	assert_false(step_find(world_job(&w, id), 1, "n0")->missing);
	reports(&w, IN_SYNC, beat + 1, NULL);
	assert_true(step_find(world_job(&w, id), 1, "n0")->missing);
	world_done(&w);
}

/* After a backup from before its end was put back, an old launch that came again was refused: the
 * agent has a step of that name which is over, and nothing of the one that we know. */
static void a_refusal_alone_is_not_the_step(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2), beat = w.toys[0].beat;
	const struct step_report refused = {
		.job = id, .attempt = 1, .state = STEP_GONE, .written = 2
	};

	assert_true(step_find(world_job(&w, id), 1, "n0")->through > 2);
	for (int i = 0; i < 2; i++) {
		reports(&w, IN_SYNC, ++beat, &refused);
		assert_true(step_find(world_job(&w, id), 1, "n0")->missing);
		assert_int_equal(w.out.n_records > 0, i == 0); /* said once */
	}
	assert_true(world_event_seen(&w, "step.missing"));
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING); /* no proof of death */
	world_done(&w);
}

/* A node was called off although it lived, its step ended and was forgotten; then a backup from
 * before that end was put back. The order to end it finds nothing but its own refusal. */
static void a_refusal_alone_of_a_step_that_was_called_off(void **state)
{
	struct world w;
	int64_t id = running(&w, 3, 2, 4);

	assert_true(step_find(world_job(&w, id), 1, "n1")->through > 2);
	world_toy_step(&w, 0, id)->hold = true; /* the attempt is not over yet */
	w.toys[1].deaf = true;
	world_run(&w, 30 * S);
	world_node_verb(&w, IN_FENCE, 1, NULL);
	world_lose_spool(&w, 1);
	w.toys[1].deaf = false;
	world_run(&w, 5 * S);
	assert_int_equal(w.toys[1].steps[0].written, 2); /* refused, and gone */
	assert_non_null(step_find(world_job(&w, id), 1, "n1"));
	world_toy_step(&w, 0, id)->hold = false;
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_null(step_find(world_job(&w, id), 1, "n1"));
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	assert_int_equal(world_job(&w, id)->n_steps, 0);
	assert_int_equal(w.toys[1].n_steps, 0);
	world_done(&w);
}

/* Its journal is being read again for a controller that knows less than it did. */
static void a_step_whose_notes_come_again_is_not_missing(void **state)
{
	struct world w;
	int64_t id = running(&w, 1, 2, 2), beat = w.toys[0].beat;
	const struct step_report rereading = { .job = id, .attempt = 1, .state = STEP_GONE };

	reports(&w, IN_SYNC, ++beat, &rereading);
	assert_false(step_find(world_job(&w, id), 1, "n0")->missing);
	assert_false(world_event_seen(&w, "step.missing"));
	world_done(&w);
}

static bool says(struct world *w, int64_t job, int state, int64_t beat)
{
	struct agent_sync sync;
	struct sync_reply reply;
	bool launch = false;

	mo_desc_init(&agent_sync_desc, &sync);
	sync.node = mo_strdup("n0");
	sync.boot_id = mo_strdup(w->toys[0].boot);
	sync.instance = mo_strdup(w->toys[0].instance);
	sync.epoch = core_state(w->core)->epoch;
	sync.beat = beat;
	*MO_ADD(&sync, steps, &step_report_desc) =
		(struct step_report){ .job = job, .attempt = 1, .state = state };
	world_step(w, &(struct core_input){ .type = IN_SYNC,
					    .sync = &(struct in_sync){ .message = &sync } });
	mo_desc_done(&agent_sync_desc, &sync);
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(w->core, "n0", &reply);
	for (size_t i = 0; i < reply.n_commands; i++)
		launch |= reply.commands[i].kind == CMD_LAUNCH && reply.commands[i].job == job;
	mo_desc_done(&sync_reply_desc, &reply);
	return launch;
}

/* Its supervisor was started and died before its first note, then the agent: what it comes back
 * with is an entry that nothing runs for, and only the launch starts that. */
static void an_accepted_step_that_never_began_is_launched_again(void **state)
{
	struct world w;
	int64_t id, beat;

	world_init(&w, 1, 2);
	w.no_launch = true;
	id = world_submit_gpus(&w, 2);
	world_beat(&w, 0);
	beat = w.toys[0].beat;
	assert_true(says(&w, id, STEP_SPOOLED, ++beat));
	assert_false(says(&w, id, STEP_STARTING, ++beat));
	assert_false(says(&w, id, STEP_SPOOLED, beat - 1)); /* a late copy */
	assert_true(says(&w, id, STEP_SPOOLED, ++beat));
	assert_false(says(&w, id, STEP_STARTING, ++beat));
	world_done(&w);
}

static void an_unknown_step_keeps_its_node_from_work(void **state)
{
	struct world w;
	struct toy_step *s;
	struct sync_reply reply;

	world_init(&w, 1, 2);
	s = MO_GROW(w.toys[0].steps, w.toys[0].n_steps);
	*s = (struct toy_step){ .job = 77, .attempt = 1, .n_ranks = 2 };
	world_note(&w, 0, 77, NOTE_RUNNING);
	world_beat(&w, 0);
	assert_true(world_node(&w, 0)->strays.any);
	assert_true(world_event_seen(&w, "step.unknown"));
	world_submit_gpus(&w, 1);
	assert_int_equal(world_job(&w, 1)->state, JOB_QUEUED);
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(w.core, "n0", &reply);
	assert_int_equal(reply.n_commands, 0); /* never killed */
	assert_int_equal(reply.n_acks, 1);
	assert_false(reply.acks[0].known);
	mo_desc_done(&sync_reply_desc, &reply);
	world_exit(&w, 0, 77, 0, 0, 0);
	world_exit(&w, 0, 77, 1, 0, 0);
	world_run(&w, 2 * S);
	assert_false(world_node(&w, 0)->strays.any);
	assert_int_equal(world_job(&w, 1)->state, JOB_RUNNING);
	world_done(&w);
}

static void late_copies_change_nothing(void **state)
{
	struct world w;
	struct agent_sync sync;
	int64_t id = running(&w, 1, 2, 2);

	world_hello(&w, 0); /* a copy of the first hello: without the step */
	assert_false(step_find(world_job(&w, id), 1, "n0")->hung);
	mo_desc_init(&agent_sync_desc, &sync);
	sync.node = mo_strdup("n0");
	sync.boot_id = mo_strdup(w.toys[0].boot);
	sync.instance = mo_strdup(w.toys[0].instance);
	sync.epoch = core_state(w.core)->epoch;
	sync.beat = 1; /* an old beat: without the step */
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &sync } });
	assert_int_equal(w.out.n_records, 0);
	sync.epoch = 0; /* of an earlier controller */
	sync.beat = 1000;
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &sync } });
	assert_int_equal(w.reply_status, 409);
	mo_desc_done(&agent_sync_desc, &sync);
	assert_false(step_find(world_job(&w, id), 1, "n0")->hung);
	world_done(&w);
}

/* A hello of a boot that was never heard, kept by the network until the next boot is registered,
 * must neither prove anything nor lock the living agent out. */
static void a_hello_of_the_dead_changes_nothing(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 4);
	char boot[32], instance[32];

	memcpy(boot, w.toys[1].boot, sizeof(boot));
	memcpy(instance, w.toys[1].instance, sizeof(instance));
	world_tick(&w, 3 * S);
	snprintf(w.toys[1].boot, sizeof(w.toys[1].boot), "%s", "never-heard");
	snprintf(w.toys[1].instance, sizeof(w.toys[1].instance), "%s", "never-heard");
	world_hello(&w, 1);
	assert_int_equal(w.reply_status, 0);
	memcpy(w.toys[1].boot, boot, sizeof(boot));
	memcpy(w.toys[1].instance, instance, sizeof(instance));
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_string_equal(world_node(&w, 1)->boot.id, boot);
	world_done(&w);
}

static void hello_is_checked(void **state)
{
	struct world w;
	struct agent_hello h;

	world_init(&w, 1, 2);
	mo_desc_init(&agent_hello_desc, &h);
	h.node = mo_strdup("n9");
	h.boot_id = mo_strdup("b");
	h.instance = mo_strdup("i");
	h.protocol = MO_PROTOCOL + 1;
	world_step(&w, &(struct core_input){ .type = IN_HELLO,
					     .hello = &(struct in_hello){ .message = &h } });
	assert_int_equal(w.reply_status, 426);
	h.protocol = MO_PROTOCOL;
	mo_str_set(&h.node, "no spaces please");
	world_step(&w, &(struct core_input){ .type = IN_HELLO,
					     .hello = &(struct in_hello){ .message = &h } });
	assert_int_equal(w.reply_status, 422);
	mo_str_set(&h.node, "n9");
	for (int i = 0; i <= MO_GPUS_PER_NODE_MAX; i++)
		MO_ADD(&h.info, gpus, &gpu_slot_desc)->index = i;
	world_step(&w, &(struct core_input){ .type = IN_HELLO,
					     .hello = &(struct in_hello){ .message = &h } });
	assert_int_equal(w.reply_status, 422);
	mo_desc_done(&agent_hello_desc, &h);
	assert_int_equal(core_state(w.core)->n_nodes, 1);
	world_done(&w);
}

static void drains(void **state)
{
	struct world w;
	int64_t id = running(&w, 2, 2, 2);
	struct note *n;

	assert_string_equal(world_job(&w, id)->run.places[0].node, "n0");
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	assert_int_equal(w.reply_status, 409);
	world_node_verb(&w, IN_DRAIN, 0, "soon");
	assert_int_equal(w.reply_status, 422);
	world_node_verb(&w, IN_DRAIN, 0, "idle");
	world_run(&w, 100 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(node_shown_state(world_node(&w, 0)), NODE_DRAINING);
	world_node_verb(&w, IN_DRAIN, 0, "checkpoint");
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	n = world_note(&w, 0, id, NOTE_CHECKPOINT);
	n->iteration = 5;
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n1");
	assert_int_equal(world_job(&w, id)->restarts, 0);
	assert_int_equal(node_shown_state(world_node(&w, 0)), NODE_DRAINED);
	assert_true(world_event_seen(&w, "node.drained"));
	world_node_verb(&w, IN_UNDRAIN, 0, NULL);
	world_node_verb(&w, IN_DRAIN, 1, "now");
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->attempt, 3);
	assert_string_equal(world_job(&w, id)->run.places[0].node, "n0");
	assert_true(world_count(&w, 1, CMD_STOP) >= 1);
	world_step(&w, &(struct core_input){
			       .type = IN_DRAIN,
			       .by.may_all = true,
			       .drain = &(struct in_drain){ .node = (char *)"nowhere" } });
	assert_int_equal(w.reply_status, 404);
	world_step(&w, &(struct core_input){ .type = IN_DRAIN,
					     .by.user = (char *)"ann",
					     .drain = &(struct in_drain){ .node = (char *)"n0" } });
	assert_int_equal(w.reply_status, 403);
	world_done(&w);
}

static void a_command_wakes_once(void **state)
{
	struct world w;
	struct sync_reply reply;
	bool woken = false;

	world_init(&w, 1, 2);
	world_submit_gpus(&w, 2);
	for (size_t i = 0; i < w.out.n_effects; i++)
		woken |= w.out.effects[i].type == FX_WAKE && mo_streq(w.out.effects[i].node, "n0");
	assert_true(woken);
	assert_true(core_commands_due(w.core, "n0"));
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(w.core, "n0", &reply);
	assert_int_equal(reply.n_commands, 1);
	mo_desc_done(&sync_reply_desc, &reply);
	/* sent: the next sync is held for the beat, whose answer repeats it */
	assert_false(core_commands_due(w.core, "n0"));
	mo_desc_init(&sync_reply_desc, &reply);
	core_sync_reply(w.core, "n0", &reply);
	assert_int_equal(reply.n_commands, 1);
	mo_desc_done(&sync_reply_desc, &reply);
	world_done(&w);
}

/* Whether an effect of that type names the request of the last event. */
static bool answered_by(const struct world *w, int type)
{
	for (size_t i = 0; i < w->out.n_effects; i++)
		if (w->out.effects[i].type == type && w->out.effects[i].request == 1)
			return true;
	return false;
}

/* Whether a sync is held is the core's word, as its refusal is: a shell asks nothing else. */
static void a_sync_is_held_or_refused(void **state)
{
	struct world w;
	struct agent_sync sync;

	world_init(&w, 1, 2);
	mo_desc_init(&agent_sync_desc, &sync);
	sync.node = mo_strdup("n0");
	sync.boot_id = mo_strdup(w.toys[0].boot);
	sync.instance = mo_strdup(w.toys[0].instance);
	sync.epoch = core_state(w.core)->epoch;
	sync.beat = 1000;
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &sync } });
	assert_true(answered_by(&w, FX_HOLD));
	assert_false(answered_by(&w, FX_REPLY));
	world_step(&w, &(struct core_input){ .type = IN_URGENT,
					     .sync = &(struct in_sync){ .message = &sync } });
	assert_true(answered_by(&w, FX_ACK));
	assert_false(answered_by(&w, FX_HOLD));
	mo_str_set(&sync.instance, "another");
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &sync } });
	assert_true(answered_by(&w, FX_REPLY));
	assert_false(answered_by(&w, FX_HOLD));
	mo_str_set(&sync.node, "nowhere");
	world_step(&w, &(struct core_input){ .type = IN_SYNC,
					     .sync = &(struct in_sync){ .message = &sync } });
	assert_true(answered_by(&w, FX_REPLY));
	assert_false(answered_by(&w, FX_HOLD));
	mo_desc_done(&agent_sync_desc, &sync);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_makes_suspect_then_down),
		cmocka_unit_test(a_hello_that_says_nothing_new_is_no_record),
		cmocka_unit_test(a_new_agent_that_has_more_gpus_is_given_work),
		cmocka_unit_test(a_late_controller_blames_nobody),
		cmocka_unit_test(after_a_long_standstill_all_have_a_full_period),
		cmocka_unit_test(a_stuttering_controller_still_sees_silence),
		cmocka_unit_test(nothing_restarts_on_silence),
		cmocka_unit_test(an_advancing_iteration_disproves_it),
		cmocka_unit_test(a_new_boot_id_is_proof),
		cmocka_unit_test(a_fence_is_proof),
		cmocka_unit_test(a_fence_is_of_one_boot),
		cmocka_unit_test(one_name_is_one_machine),
		cmocka_unit_test(agents_restart_under_the_same_boot),
		cmocka_unit_test(a_step_the_agent_lost_is_not_dead),
		cmocka_unit_test(a_sync_sent_before_urgent_notes_proves_no_absence),
		cmocka_unit_test(a_refusal_alone_is_not_the_step),
		cmocka_unit_test(a_refusal_alone_of_a_step_that_was_called_off),
		cmocka_unit_test(a_step_whose_notes_come_again_is_not_missing),
		cmocka_unit_test(a_hung_supervisor_is_reported_not_killed),
		cmocka_unit_test(an_unknown_step_keeps_its_node_from_work),
		cmocka_unit_test(an_accepted_step_that_never_began_is_launched_again),
		cmocka_unit_test(late_copies_change_nothing),
		cmocka_unit_test(a_hello_of_the_dead_changes_nothing),
		cmocka_unit_test(hello_is_checked),
		cmocka_unit_test(drains),
		cmocka_unit_test(a_command_wakes_once),
		cmocka_unit_test(a_sync_is_held_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
