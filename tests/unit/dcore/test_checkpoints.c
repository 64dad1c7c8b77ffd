/* Where attempts resume: only from what is complete, never a silent fresh start. */
#include "tests/unit/dcore/world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/model/limits.h"

/* A job of two ranks on one node that saves to /ckpt; what differs is said to again(). */
struct one { struct world w; int64_t id; };

static void submit(struct one *o, int64_t resume, int64_t keep)
{
	struct submit spec;

	world_init(&o->w, 1, 2);
	world_recipe(&spec, 2);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = resume;
	spec.recipe.checkpoint.keep = keep;
	mo_strs_add(&spec.engine.resume, &spec.engine.n_resume, "--load={dir}/{iteration}");
	mo_strs_add(&spec.engine.fresh, &spec.engine.n_fresh, "--fresh");
	spec.engine.layout.announced_is_complete = true;
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
}

/* resume: auto; nothing lies there yet, and nothing was looked at */
static int setup(void **state)
{
	struct one *o = *state = mo_alloc(sizeof(*o));

	submit(o, -1, 0);
	return 0;
}

static int teardown(void **state)
{
	struct one *o = *state;

	world_done(&o->w);
	free(o);
	return 0;
}

static void again(struct one *o, int64_t resume, int64_t keep)
{
	world_done(&o->w);
	submit(o, resume, keep);
	o->w.verify = keep > 0;   /* what is being verified is not removed */
}

static const struct job *job(const struct one *o)
{
	return world_job(&o->w, o->id);
}

static int state_of(const struct one *o, int64_t iteration)
{
	return checkpoint_find(job(o), iteration)->state;
}

static void run(struct one *o, int64_t seconds)
{
	world_run(&o->w, seconds * S);
}

static void save(struct one *o, int64_t iteration)
{
	struct note *n;

	world_iteration(&o->w, 0, o->id, iteration);
	n = world_note(&o->w, 0, o->id, NOTE_SAVING);
	n->iteration = iteration;
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&o->w, iteration, true);
	run(o, 1);
}

/* Rank 0 dies; the next attempt, if any, runs. */
static void crash(struct one *o)
{
	world_exit(&o->w, 0, o->id, 0, 0, SIGKILL);
	run(o, 3);
}

static int restart_from(struct one *o, int64_t iteration)
{
	world_step(&o->w, &(struct core_event){ .type = EV_RESTART, .job = o->id, .value = iteration, .user = "ann" });
	return o->w.reply_status;
}

/* This attempt was launched from there. It is recovering or running: its ranks may not have iterated yet. */
static void resumed(const struct one *o, int64_t attempt, int64_t resume)
{
	assert_int_equal(job(o)->n_started, 1);
	assert_int_equal(job(o)->attempt, attempt);
	assert_int_equal(job(o)->resume, resume);
}

static void a_new_job_resumes_from_what_lies_there(void **state)
{
	static const struct { int64_t resume; int64_t expect; const char *word; } cases[] = { { -1, 200, "--load=/ckpt/200" }, { -2, -1, "--fresh" }, { 100, 100, "--load=/ckpt/100" } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct one *o = *state;
		const struct launch *l = NULL;

		again(o, cases[i].resume, 0);
		world_found(&o->w, 300, false);
		world_found(&o->w, 100, true);
		world_found(&o->w, 200, true);
		run(o, 2);
		resumed(o, 1, cases[i].expect);
		for (size_t k = 0; k < o->w.toys[0].n_log; k++)
			l = o->w.toys[0].log[k].launch ? o->w.toys[0].log[k].launch : l;
		assert_non_null(l);
		assert_string_equal(l->argv[1], cases[i].word);
		assert_int_equal(l->resume, cases[i].expect);
		assert_int_equal(state_of(o, 300), CKPT_TORN);
		assert_int_equal(state_of(o, 200), CKPT_VERIFIED);
		assert_true(world_event_seen(&o->w, "checkpoint.torn") && world_event_seen(&o->w, "checkpoint.verified"));
	}
}

/* A scan may no more than the launch: without the submitter's right it does not run as uid 0, whatever the account is called. */
static void a_scan_carries_the_right_to_be_root(void **state)
{
	struct one *o = *state;

	for (int may = 0; may < 2; may++) {
		struct submit spec;
		bool seen = false;

		world_done(&o->w);
		world_init(&o->w, 1, 2);
		world_recipe(&spec, 2);
		spec.allow_root = may;
		spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
		o->id = world_submit(&o->w, &spec);
		mo_desc_done(&submit_desc, &spec);
		run(o, 2);
		for (size_t i = 0; i < o->w.toys[0].n_log; i++) {
			const struct command *c = &o->w.toys[0].log[i];

			seen |= c->kind == CMD_SCAN;
			assert_true((c->kind != CMD_SCAN || c->allow_root == may) && (c->kind != CMD_LAUNCH || c->launch->allow_root == may));
		}
		assert_true(seen);
	}
}

static void nothing_there_is_a_fresh_start(void **state)
{
	struct one *o = *state;

	run(o, 2);
	resumed(o, 1, -1);
}

static void everything_damaged_waits(void **state)
{
	struct one *o = *state;
	struct why_view why;

	world_found(&o->w, 300, false);
	run(o, 100);
	assert_int_equal(job(o)->state, JOB_QUEUED);
	assert_non_null(strstr(job(o)->reason, "every checkpoint in /ckpt is damaged"));
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(o->w.core), job(o), o->w.now, &why);
	assert_string_equal(why.reasons[0].code, "checkpoint");
	assert_non_null(strstr(why.reasons[0].evidence[0], "no COMPLETE file"));
	mo_desc_done(&why_view_desc, &why);
	o->w.scan.items[0].complete = true;   /* repaired */
	run(o, 40);
	resumed(o, 1, 300);
}

static void restart_from_0_is_a_spoken_fresh_start(void **state)
{
	struct one *o = *state;

	world_found(&o->w, 300, false);
	run(o, 5);
	assert_int_equal(restart_from(o, 0), 200);
	run(o, 5);
	resumed(o, 1, -1);
}

static void a_named_one_that_is_missing_fails(void **state)
{
	struct one *o = *state;

	again(o, 150, 0);
	world_found(&o->w, 100, true);
	run(o, 5);
	assert_int_equal(job(o)->state, JOB_FAILED);
	assert_non_null(strstr(job(o)->reason, "checkpoint.resume: 150"));
	assert_int_equal(job(o)->attempt, 0);
}

static void unwritable_and_unreadable(void **state)
{
	struct one *o = *state;

	o->w.scan.error = mo_strdup("the helper timed out");
	run(o, 50);
	assert_int_equal(job(o)->state, JOB_QUEUED);
	assert_non_null(strstr(job(o)->reason, "timed out"));
	mo_str_set(&o->w.scan.error, NULL);
	o->w.scan.writable = false;
	run(o, 50);
	assert_int_equal(job(o)->state, JOB_FAILED);
	assert_non_null(strstr(job(o)->reason, "not writable by ann"));
}

static void recovery_takes_the_newest_complete(void **state)
{
	struct one *o = *state;
	size_t scans;

	run(o, 2);
	save(o, 10);
	save(o, 20);
	scans = world_count(&o->w, 0, CMD_SCAN);
	o->w.scan.items[1].complete = false;   /* torn since */
	o->w.scan.items[1].bytes = 0;
	crash(o);
	resumed(o, 2, 10);
	assert_true(world_count(&o->w, 0, CMD_SCAN) > scans);
	assert_int_equal(state_of(o, 20), CKPT_TORN);
	assert_int_equal(job(o)->incidents[0].lost_iterations, 10);
}

static void an_announced_one_counts_without_marker(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	o->w.scan.items[0].complete = false;   /* no COMPLETE file, but the engine announced it and bytes are there */
	crash(o);
	assert_int_equal(job(o)->resume, 10);
}

static void lost_checkpoints_are_not_a_fresh_start(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	mo_vec_clear(&found_checkpoint_desc, (void **)&o->w.scan.items, &o->w.scan.n_items);   /* not mounted any more */
	world_exit(&o->w, 0, o->id, 0, 0, SIGKILL);
	run(o, 60);
	assert_int_equal(job(o)->state, JOB_RECOVERING);
	assert_int_equal(job(o)->attempt, 1);
	assert_non_null(strstr(job(o)->reason, "not found in checkpoint.dir"));
	world_found(&o->w, 10, true);
	run(o, 40);
	resumed(o, 2, 10);
}

static void an_unfinished_first_save_is_no_loss(void **state)
{
	struct one *o = *state;
	struct note *n;

	run(o, 2);
	world_iteration(&o->w, 0, o->id, 10);
	n = world_note(&o->w, 0, o->id, NOTE_SAVING);
	n->iteration = 10;
	world_found(&o->w, 10, false);
	crash(o);
	resumed(o, 2, -1);
}

static void restart_from_takes_the_newest_at_most(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	save(o, 20);
	save(o, 30);
	assert_int_equal(restart_from(o, 5), 409);
	assert_int_equal(restart_from(o, 25), 200);
	run(o, 3);
	resumed(o, 2, 20);
	assert_int_equal(job(o)->restarts, 0);
}

static void an_announcement_without_a_number_is_ignored(void **state)
{
	struct one *o = *state;
	struct note *n;

	run(o, 2);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = MO_NONE;
	n->path = mo_strdup("/ckpt/last");
	run(o, 1);
	assert_int_equal(job(o)->n_checkpoints, 0);
	assert_false(world_event_seen(&o->w, "checkpoint.saved"));
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->iteration = MO_NONE;
	n->path = mo_strdup("/ckpt/step7");
	run(o, 1);
	assert_non_null(checkpoint_find(job(o), 7));
	assert_true(world_event_seen(&o->w, "checkpoint.saved"));
}

static void what_the_user_went_back_behind_is_superseded(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	save(o, 20);
	save(o, 30);
	assert_int_equal(restart_from(o, 10), 200);
	run(o, 3);
	assert_int_equal(job(o)->resume, 10);
	for (size_t i = 0; i < job(o)->n_checkpoints; i++)
		assert_int_equal(job(o)->checkpoints[i].state == CKPT_SUPERSEDED, job(o)->checkpoints[i].iteration > 10);
	crash(o);
	resumed(o, 3, 10);
	save(o, 20);   /* written again */
	crash(o);
	resumed(o, 4, 20);
}

/* What is damaged or missing when a user goes back is given up too: it is neither resumed when it turns up again, nor does it hold up the new run. */
static void damage_behind_the_chosen_one_is_given_up(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	save(o, 20);
	o->w.scan.n_items--;   /* the file system does not show it for a while */
	assert_int_equal(restart_from(o, 10), 200);
	run(o, 3);
	resumed(o, 2, 10);
	o->w.scan.n_items++;
	crash(o);
	resumed(o, 3, 10);
	assert_int_equal(state_of(o, 20), CKPT_SUPERSEDED);
}

static void old_damage_does_not_hold_up_a_spoken_fresh_start(void **state)
{
	struct one *o = *state;

	world_found(&o->w, 300, false);
	run(o, 5);
	assert_int_equal(restart_from(o, 0), 200);
	run(o, 5);
	resumed(o, 1, -1);
	crash(o);
	resumed(o, 2, -1);
}

static void keep_leaves_the_chosen_one(void **state)
{
	struct one *o = *state;

	again(o, -1, 2);
	run(o, 2);
	save(o, 10);
	save(o, 20);
	o->w.no_kill = true;
	assert_int_equal(restart_from(o, 10), 200);
	save(o, 30);           /* the ranks save once more before they stop */
	run(o, 3);
	assert_int_equal(job(o)->state, JOB_STOPPING);
	assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
	o->w.no_kill = false;
	run(o, 5);
	resumed(o, 2, 10);
}

static void a_chosen_one_that_was_damaged_since_is_waited_for(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	save(o, 20);
	o->w.scan.items[0].complete = false;
	o->w.scan.items[0].bytes = 0;
	assert_int_equal(restart_from(o, 10), 200);
	run(o, 60);
	assert_int_equal(job(o)->state, JOB_QUEUED);
	assert_int_equal(job(o)->attempt, 1);
	assert_non_null(strstr(job(o)->reason, "restart --from 10: no complete checkpoint at or before it is left in /ckpt: incomplete; bring one back"));
	assert_non_null(strstr(job(o)->reason, "--from 0 to start afresh"));
	o->w.scan.items[0].complete = true;
	run(o, 40);
	resumed(o, 2, 10);
}

static void never_still_recovers_from_its_own(void **state)
{
	struct one *o = *state;

	again(o, -2, 0);
	world_found(&o->w, 500, true);   /* of another job */
	run(o, 2);
	assert_int_equal(job(o)->resume, -1);
	save(o, 10);
	crash(o);
	assert_int_equal(job(o)->resume, 10);
}

/* Another job that saves to the same place, written otherwise. */
static int64_t second(struct one *o, const char *dir)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, 1);
	spec.recipe.checkpoint.dir = mo_strdup(dir);
	spec.recipe.checkpoint.resume = -1;
	id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	return id;
}

static void a_directory_belongs_to_one_unfinished_job(void **state)
{
	struct one *o = *state;
	struct why_view why;
	int64_t other;

	world_done(&o->w);
	world_init(&o->w, 2, 2);
	o->id = second(o, "/ckpt");
	run(o, 2);
	assert_int_equal(job(o)->attempt, 1);
	other = second(o, "/x/..//ckpt/");
	run(o, 3);
	assert_int_equal(world_job(&o->w, other)->state, JOB_QUEUED);
	assert_string_equal(world_job(&o->w, other)->reason, "checkpoint.dir is in use by j-1; waits");
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(o->w.core), world_job(&o->w, other), o->w.now, &why);
	assert_string_equal(why.reasons[0].code, "checkpoint-in-use");
	assert_string_equal(why.reasons[0].evidence[0], "j-1 (job) is running and saves to /x/..//ckpt/");
	mo_desc_done(&why_view_desc, &why);
	world_verb(&o->w, EV_PAUSE, o->id);
	run(o, 3);
	assert_int_equal(job(o)->state, JOB_PAUSED);
	assert_int_equal(world_job(&o->w, other)->state, JOB_QUEUED);   /* a paused job goes on from there */
	assert_int_equal(world_job(&o->w, second(o, "/ckpt2"))->attempt, 0);
	run(o, 2);
	assert_int_equal(world_job(&o->w, other + 1)->attempt, 1);      /* it keeps nobody else waiting */
	world_verb(&o->w, EV_CANCEL, o->id);
	run(o, 3);
	assert_int_equal(world_job(&o->w, other)->attempt, 1);
}

static void what_somebody_else_wrote_is_not_resumed(void **state)
{
	static const int64_t resumes[] = { -1, -2 };

	for (size_t i = 0; i < ELEMENTSOF(resumes); i++) {
		struct one *o = *state;

		again(o, resumes[i], 0);
		run(o, 2);
		save(o, 10);
		world_iteration(&o->w, 0, o->id, 11);
		run(o, 1);
		world_verb(&o->w, EV_PAUSE, o->id);
		run(o, 3);
		world_found(&o->w, 500, true);   /* by a program outside */
		world_found(&o->w, 600, false);
		world_verb(&o->w, EV_RESUME, o->id);
		run(o, 3);
		resumed(o, 2, 10);
		assert_int_equal(state_of(o, 500), CKPT_SUPERSEDED);
		assert_string_equal(checkpoint_find(job(o), 500)->reason, "not of this job, which came to iteration 11 only");
	}
}

/* An agent and its journal are lost with their node: the job may have saved beyond the last iteration that was told. */
static void what_was_saved_by_a_lost_node_is_its_own(void **state)
{
	struct one *o = *state;

	run(o, 2);
	save(o, 10);
	world_found(&o->w, 20, true);
	world_reboot(&o->w, 0);
	run(o, 5);
	resumed(o, 2, 20);
}

static void keep_removes_what_this_job_wrote(void **state)
{
	struct one *o = *state;

	again(o, -1, 2);
	world_found(&o->w, 5, true);   /* of an earlier job: never removed */
	run(o, 2);
	assert_int_equal(job(o)->resume, 5);
	save(o, 10);
	save(o, 20);
	assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
	o->w.no_scan = true;
	save(o, 30);
	run(o, 3);
	assert_int_equal(state_of(o, 10), CKPT_DELETED);
	assert_true(checkpoint_removing(checkpoint_find(job(o), 10)));
	assert_int_equal(o->w.scan.n_items, 4);
	o->w.no_scan = false;
	run(o, 3);
	assert_int_equal(o->w.scan.n_items, 3);
	assert_false(checkpoint_removing(checkpoint_find(job(o), 10)));
	assert_int_equal(state_of(o, 10), CKPT_DELETED);
	save(o, 40);
	run(o, 2);
	assert_int_equal(o->w.scan.n_items, 3);
	assert_int_equal(o->w.scan.items[0].iteration, 5);
	assert_int_equal(o->w.scan.items[1].iteration, 30);
	crash(o);
	assert_int_equal(job(o)->resume, 40);
}

/* Nothing goes wrong, so no attempt follows that would look: the end does. */
static void a_completed_job_verifies_its_last(void **state)
{
	struct one *o = *state;
	size_t scans;

	run(o, 2);
	save(o, 10);
	save(o, 20);
	o->w.scan.items[0].complete = false;
	o->w.scan.items[0].bytes = 0;
	scans = world_count(&o->w, 0, CMD_SCAN);
	assert_int_equal(state_of(o, 20), CKPT_COMPLETE);
	o->w.no_scan = true;
	world_exit(&o->w, 0, o->id, 0, 0, 0);
	world_exit(&o->w, 0, o->id, 1, 0, 0);
	run(o, 3);
	assert_int_equal(job(o)->state, JOB_COMPLETED);    /* it does not wait for that */
	assert_int_equal(state_of(o, 20), CKPT_COMPLETE);
	world_crash(&o->w);
	world_hello(&o->w, 0);
	o->w.no_scan = false;
	run(o, 3);
	assert_int_equal(state_of(o, 20), CKPT_VERIFIED);
	assert_int_equal(state_of(o, 10), CKPT_TORN);
	assert_true(world_event_seen(&o->w, "checkpoint.verified"));
	scans = world_count(&o->w, 0, CMD_SCAN) - scans;
	run(o, 10);
	assert_true(scans >= 1);
	scans = world_count(&o->w, 0, CMD_SCAN);
	run(o, 10);
	assert_int_equal(world_count(&o->w, 0, CMD_SCAN), scans);   /* once */
}

static size_t events_of(const struct one *o, const char *type, int64_t *ret_iteration)
{
	const struct state *s = core_state(o->w.core);
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (mo_streq(s->events[i].type, type)) {
			n++;
			if (sscanf(s->events[i].data, "{\"iteration\":%" SCNd64, ret_iteration) != 1)
				*ret_iteration = MO_NONE;
		}
	return n;
}

static void an_announcement_elsewhere_is_refused(void **state)
{
	static const char *const paths[] = { "/etc/passwd", "relative/5", "5", "/ckpt/../etc/5", "/ckpt2/5", "" };
	struct one *o = *state;
	int64_t iteration;

	run(o, 2);
	world_iteration(&o->w, 0, o->id, 3);
	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->path = mo_strdup(paths[i]);
	run(o, 1);
	assert_int_equal(job(o)->n_checkpoints, 0);
	assert_int_equal(events_of(o, "checkpoint.saved", &iteration), 0);
	assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 1);
	world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->path = mo_strdup("//ckpt/./3/");
	run(o, 1);
	assert_int_equal(state_of(o, 3), CKPT_COMPLETE);
	assert_int_equal(events_of(o, "checkpoint.refused", &iteration), 1);
}

/* Announced without a number between two iterations that arrive together. */
static void event_and_ledger_name_one_iteration(void **state)
{
	struct one *o = *state;
	int64_t iteration = MO_NONE;

	run(o, 2);
	world_iteration(&o->w, 0, o->id, 3);
	world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->path = mo_strdup("/ckpt/last");
	world_iteration(&o->w, 0, o->id, 4);
	run(o, 1);
	assert_int_equal(job(o)->n_checkpoints, 1);
	assert_int_equal(job(o)->checkpoints[0].iteration, 3);
	assert_int_equal(events_of(o, "checkpoint.saved", &iteration), 1);
	assert_int_equal(iteration, 3);
}

/* Nobody removes it, so it is not told as deleted. */
static void keep_leaves_what_lies_elsewhere(void **state)
{
	struct one *o = *state;

	again(o, -1, 1);
	run(o, 2);
	save(o, 10);
	mo_str_set(&o->w.scan.items[0].path, "/elsewhere/10");
	crash(o);
	assert_string_equal(checkpoint_find(job(o), 10)->path, "/elsewhere/10");
	save(o, 20);
	assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
	assert_string_equal(checkpoint_find(job(o), 10)->reason, "outside checkpoint.dir: not removed by checkpoint.keep");
	save(o, 30);
	assert_int_equal(state_of(o, 20), CKPT_DELETED);
}

/* What was only announced may turn out torn: the verified one before it stays. */
static void keep_one_never_removes_the_only_verified(void **state)
{
	struct one *o = *state;

	again(o, -1, 1);
	run(o, 2);
	save(o, 10);
	assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
	mo_str_set(&o->w.scan.error, "the helper was late");
	save(o, 20);
	run(o, 5);
	assert_int_equal(state_of(o, 20), CKPT_COMPLETE);
	assert_string_equal(checkpoint_find(job(o), 20)->reason, "not verified: the helper was late");
	assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
	world_note(&o->w, 0, o->id, NOTE_SAVING)->iteration = 30;      /* nor while the next one is being saved */
	run(o, 5);
	assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
	mo_str_set(&o->w.scan.error, NULL);
	save(o, 30);
	run(o, 3);
	assert_int_equal(state_of(o, 30), CKPT_VERIFIED);
	assert_int_equal(state_of(o, 10), CKPT_DELETED);
	assert_int_equal(state_of(o, 20), CKPT_DELETED);
}

/* A job that ends, however it ends, while its node has not removed yet: the last look does it. */
static void what_was_to_be_removed_goes_at_the_end(void **state)
{
	struct one *o = *state;

	for (int way = 0; way < 3; way++) {
		again(o, -1, 1);
		run(o, 2);
		save(o, 10);
		o->w.no_scan = way < 2;
		o->w.prune_fails = way == 2;
		save(o, 20);
		run(o, 2);
		assert_true(checkpoint_removing(checkpoint_find(job(o), 10)));
		if (way != 1) {
			world_exit(&o->w, 0, o->id, 0, 0, 0);
			world_exit(&o->w, 0, o->id, 1, 0, 0);
		} else {
			world_verb(&o->w, EV_CANCEL, o->id);
		}
		run(o, 5);
		assert_true(job_state_final(job(o)->state));
		world_crash(&o->w);
		world_hello(&o->w, 0);
		o->w.no_scan = false;
		run(o, 5);
		assert_false(checkpoint_any_removing(job(o)));
		if (way < 2) {
			assert_int_equal(state_of(o, 10), CKPT_DELETED);
			assert_string_equal(checkpoint_find(job(o), 10)->reason, "checkpoint.keep held newer ones");
			assert_int_equal(o->w.scan.n_items, 1);
		} else {
			assert_int_equal(state_of(o, 10), CKPT_VERIFIED);
			assert_string_equal(checkpoint_find(job(o), 10)->reason, "it could not be removed, though checkpoint.keep holds newer ones");
		}
		assert_int_equal(state_of(o, 20), CKPT_VERIFIED);
	}
}

static void a_path_without_iteration(void **state)
{
	struct one *o = *state;
	struct note *n;

	run(o, 2);
	n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);
	n->path = mo_strdup("/ckpt/step-0042/");
	run(o, 1);
	assert_int_equal(state_newest_checkpoint(job(o)), 42);
}

static void the_ledger_is_bounded(void **state)
{
	struct one *o = *state;

	run(o, 2);
	for (int64_t i = 0; i < MO_CHECKPOINTS_MAX + 10; i++)
		world_note(&o->w, 0, o->id, NOTE_CHECKPOINT)->iteration = i;
	run(o, 1);
	assert_int_equal(job(o)->n_checkpoints, MO_CHECKPOINTS_MAX);
	assert_int_equal(state_newest_checkpoint(job(o)), MO_CHECKPOINTS_MAX + 9);
	assert_int_equal(job(o)->checkpoints[0].iteration, 10);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_new_job_resumes_from_what_lies_there),
		T(a_scan_carries_the_right_to_be_root),
		T(nothing_there_is_a_fresh_start),
		T(everything_damaged_waits),
		T(restart_from_0_is_a_spoken_fresh_start),
		T(a_named_one_that_is_missing_fails),
		T(unwritable_and_unreadable),
		T(recovery_takes_the_newest_complete),
		T(an_announced_one_counts_without_marker),
		T(lost_checkpoints_are_not_a_fresh_start),
		T(an_unfinished_first_save_is_no_loss),
		T(restart_from_takes_the_newest_at_most),
		T(an_announcement_without_a_number_is_ignored),
		T(what_the_user_went_back_behind_is_superseded),
		T(damage_behind_the_chosen_one_is_given_up),
		T(old_damage_does_not_hold_up_a_spoken_fresh_start),
		T(keep_leaves_the_chosen_one),
		T(a_chosen_one_that_was_damaged_since_is_waited_for),
		T(never_still_recovers_from_its_own),
		T(a_directory_belongs_to_one_unfinished_job),
		T(what_somebody_else_wrote_is_not_resumed),
		T(what_was_saved_by_a_lost_node_is_its_own),
		T(keep_removes_what_this_job_wrote),
		T(a_completed_job_verifies_its_last),
		T(keep_leaves_what_lies_elsewhere),
		T(keep_one_never_removes_the_only_verified),
		T(what_was_to_be_removed_goes_at_the_end),
		T(an_announcement_elsewhere_is_refused),
		T(event_and_ledger_name_one_iteration),
		T(a_path_without_iteration),
		T(the_ledger_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
