/* Where attempts resume: only from what is complete, never a silent fresh start. */
#include "tests/unit/dcore/saver.h"
#include "daemon/core/update/claims.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_view.h"

#include <signal.h>
#include <string.h>

static void a_new_job_resumes_from_what_lies_there(void **state)
{
	static const struct {
		int64_t resume;
		int64_t expect;
		const char *word;
	} cases[] = { { -1, 200, "--load=/ckpt/200" },
		      { -2, -1, "--fresh" },
		      { 100, 100, "--load=/ckpt/100" } };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct saver *o = *state;
		const struct launch *l = NULL;

		saver_again(o, cases[i].resume, 0);
		world_found(&o->w, 300, false);
		world_found(&o->w, 100, true);
		world_found(&o->w, 200, true);
		saver_run(o, 2);
		saver_resumed(o, 1, cases[i].expect);
		for (size_t k = 0; k < o->w.toys[0].n_log; k++)
			l = o->w.toys[0].log[k].launch ? o->w.toys[0].log[k].launch : l;
		assert_non_null(l);
		assert_string_equal(l->argv[1], cases[i].word);
		assert_int_equal(l->resume, cases[i].expect);
		assert_int_equal(saver_state(o, 300), CKPT_TORN);
		assert_int_equal(saver_state(o, 200), CKPT_VERIFIED);
		assert_true(world_event_seen(&o->w, "checkpoint.torn") &&
			    world_event_seen(&o->w, "checkpoint.verified"));
	}
}

/* A scan may no more than the launch: without the submitter's right it does not run as uid 0,
 * whatever the account is called. */
static void a_scan_carries_the_right_to_be_root(void **state)
{
	struct saver *o = *state;

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
		saver_run(o, 2);
		for (size_t i = 0; i < o->w.toys[0].n_log; i++) {
			const struct command *c = &o->w.toys[0].log[i];

			seen |= c->kind == CMD_SCAN;
			assert_true((c->kind != CMD_SCAN || c->allow_root == may) &&
				    (c->kind != CMD_LAUNCH || c->launch->allow_root == may));
		}
		assert_true(seen);
	}
}

static void nothing_there_is_a_fresh_start(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_resumed(o, 1, -1);
}

static void everything_damaged_waits(void **state)
{
	struct saver *o = *state;
	struct why_view why;

	world_found(&o->w, 300, false);
	saver_run(o, 100);
	assert_int_equal(saver_job(o)->state, JOB_QUEUED);
	assert_non_null(strstr(saver_job(o)->reason, "every checkpoint in /ckpt is damaged"));
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(o->w.core), saver_job(o), o->w.now, &why);
	assert_string_equal(why.reasons[0].code, "checkpoint");
	assert_non_null(strstr(why.reasons[0].evidence[0], "no COMPLETE file"));
	mo_desc_done(&why_view_desc, &why);
	o->w.scan.items[0].complete = true; /* repaired */
	saver_run(o, 40);
	saver_resumed(o, 1, 300);
}

static void restart_from_0_is_a_spoken_fresh_start(void **state)
{
	struct saver *o = *state;

	world_found(&o->w, 300, false);
	saver_run(o, 5);
	assert_int_equal(saver_restart(o, 0), 200);
	saver_run(o, 5);
	saver_resumed(o, 1, -1);
}

/* Its format does not reshard: with other sizes no attempt begins; with the same it resumes. Sizes
 * that are not known are not compared. */
static void what_does_not_reshard_needs_its_sizes(void **state)
{
	static const struct {
		const char *fixed;
		bool fits;
	} cases[] = {
		{ "tp 2", false },
		{ "tp 1, pp 1, ep 4", false },
		{ "tp 1, pp 1, ep 1", true },
		{ "tp 1, new 5", true },
		{ "", true },
		/* an odd node: not read past its end */
		{ "tp 1, pp 1,", true },
		{ ",", true },
	};
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		saver_again(o, -1, 0);
		world_found(&o->w, 10, true);
		mo_str_set(&o->w.scan.items[0].fixed, cases[i].fixed);
		saver_run(o, 3);
		assert_int_equal(saver_job(o)->state == JOB_FAILED, !cases[i].fits);
		if (cases[i].fits)
			saver_resumed(o, 1, 10);
		else
			assert_non_null(strstr(saver_job(o)->reason,
					       "checkpoint 10 in /ckpt does not "
					       "reshard: it was saved with tp"));
	}
}

/* Whole, and yet another one would be loaded in its place: the job waits and says what to do; as
 * soon as that is done it resumes. */
static void what_the_engine_would_mix_waits(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 0);
	world_found(&o->w, 10, true);
	world_found(&o->w, 20, false);
	mo_str_set(&o->w.scan.items[0].held,
		   "the engine would load distrib_optim.pt of iteration 20: write 10 into it");
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->attempt, 0);
	assert_false(job_state_final(saver_job(o)->state));
	assert_non_null(strstr(saver_job(o)->reason,
			       "checkpoint 10 in /ckpt: the engine would load "
			       "distrib_optim.pt of iteration 20: write 10 into it"));
	mo_str_set(&o->w.scan.items[0].held, NULL);
	saver_run(o, 60);
	saver_resumed(o, 1, 10);
}

/* Without etp experts are split as the rest is. */
static void experts_without_a_word_are_split_as_the_rest(void **state)
{
	static const struct {
		int64_t etp;
		const char *fixed, *misfit;
	} cases[] = {
		{ MO_NONE, "tp 2, pp 1, ep 2, etp 2", NULL },
		{ MO_NONE, "tp 2, pp 1, ep 2, etp 1", "etp 2" },
		{ 1, "tp 2, pp 1, ep 2, etp 1", NULL },
		{ 1, "tp 2, pp 1, ep 2, etp 2", "etp 1" },
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const struct recipe r = { .parallelism = { .tp = 2,
							   .pp = 1,
							   .ep = 2,
							   .etp = cases[i].etp,
							   .cp = MO_NONE } };
		const struct checkpoint c = { .fixed = (char *)cases[i].fixed };
		_cleanup_(mo_freep) char *misfit = checkpoint_misfit(&c, &r);

		assert_true(mo_streq(misfit, cases[i].misfit));
	}
}

/* engine.args may say it in the engine's own words: a job does not lose its own checkpoints over
 * them. */
static void experts_of_the_command_are_not_guessed(void **state)
{
	static const char *const words[] = { "expert-tensor-parallel-size",
					     "expert_tensor_parallel_size",
					     "--expert-tensor-parallel-size=1" };

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(words); i++) {
		struct kv arg = { (char *)words[i], (char *)"1" };
		const struct recipe r = {
			.parallelism = { .tp = 2, .pp = 1, .ep = 2, .etp = MO_NONE, .cp = MO_NONE },
			.engine = { .args = &arg, .n_args = 1 }
		};
		const struct checkpoint c = { .fixed = (char *)"tp 2, pp 1, ep 2, etp 1" };

		assert_null(checkpoint_misfit(&c, &r));
	}
}

static void a_named_one_that_is_missing_fails(void **state)
{
	struct saver *o = *state;

	saver_again(o, 150, 0);
	world_found(&o->w, 100, true);
	saver_run(o, 5);
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_non_null(strstr(saver_job(o)->reason, "checkpoint.resume: 150"));
	assert_int_equal(saver_job(o)->attempt, 0);
}

static void unwritable_and_unreadable(void **state)
{
	struct saver *o = *state;

	o->w.scan.error = mo_strdup("the helper timed out");
	saver_run(o, 50);
	assert_int_equal(saver_job(o)->state, JOB_QUEUED);
	assert_non_null(strstr(saver_job(o)->reason, "timed out"));
	mo_str_set(&o->w.scan.error, NULL);
	o->w.scan.writable = false;
	saver_run(o, 50);
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_non_null(strstr(saver_job(o)->reason, "not writable by ann"));
}

static void recovery_takes_the_newest_complete(void **state)
{
	struct saver *o = *state;
	size_t scans;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	scans = world_count(&o->w, 0, CMD_SCAN);
	o->w.scan.items[1].complete = false; /* torn since */
	o->w.scan.items[1].bytes = 0;
	saver_crash(o);
	saver_resumed(o, 2, 10);
	assert_true(world_count(&o->w, 0, CMD_SCAN) > scans);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	assert_int_equal(saver_job(o)->incidents[0].lost_iterations, 10);
}

static void lost_checkpoints_are_not_a_fresh_start(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	/* not mounted any more */
	mo_vec_clear(&found_checkpoint_desc, (void **)&o->w.scan.items, &o->w.scan.n_items);
	world_exit(&o->w, 0, o->id, 0, 0, SIGKILL);
	saver_run(o, 60);
	assert_int_equal(saver_job(o)->state, JOB_RECOVERING);
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_non_null(strstr(saver_job(o)->reason, "not found in checkpoint.dir"));
	world_found(&o->w, 10, true);
	saver_run(o, 40);
	saver_resumed(o, 2, 10);
}

static void an_unfinished_first_save_is_no_loss(void **state)
{
	struct saver *o = *state;
	struct note *n;

	saver_run(o, 2);
	world_iteration(&o->w, 0, o->id, 10);
	n = world_note(&o->w, 0, o->id, NOTE_SAVING);
	n->iteration = 10;
	world_found(&o->w, 10, false);
	saver_crash(o);
	saver_resumed(o, 2, -1);
}

static void restart_from_takes_the_newest_at_most(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	saver_save(o, 30);
	assert_int_equal(saver_restart(o, 5), 409);
	assert_int_equal(saver_restart(o, 25), 200);
	saver_run(o, 3);
	saver_resumed(o, 2, 20);
	assert_int_equal(saver_job(o)->restarts, 0);
}

static void what_the_user_went_back_behind_is_superseded(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	saver_save(o, 30);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->run.resume, 10);
	for (size_t i = 0; i < saver_job(o)->n_checkpoints; i++)
		assert_int_equal(saver_job(o)->checkpoints[i].state == CKPT_SUPERSEDED,
				 saver_job(o)->checkpoints[i].iteration > 10);
	saver_crash(o);
	saver_resumed(o, 3, 10);
	saver_save(o, 20); /* written again */
	saver_crash(o);
	saver_resumed(o, 4, 20);
}

/* The new run came past it and did not write it again: it is what the user gave up. */
static void an_unchanged_one_that_was_passed_stays_superseded(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	saver_resumed(o, 2, 10);
	world_iteration(&o->w, 0, o->id, 25);
	saver_crash(o);
	saver_resumed(o, 3, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
}

/* What is damaged or missing when a user goes back is given up too: it is neither resumed when it
 * turns up again, nor does it hold up the new run. */
static void damage_behind_the_chosen_one_is_given_up(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	o->w.scan.n_items--; /* the file system does not show it for a while */
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 3);
	saver_resumed(o, 2, 10);
	o->w.scan.n_items++;
	saver_crash(o);
	saver_resumed(o, 3, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
}

/* The node is lost with all that it would have reported of the attempt: that it began to save here,
 * say. */
static void written_again_unheard(struct saver *o, int64_t iteration, bool complete)
{
	struct found_checkpoint *f = &o->w.scan.items[0];

	while (f->iteration != iteration)
		f++;
	f->complete = complete;
	f->saved_at = o->w.now;
	free(f->manifest);
	f->manifest = mo_printf("as it was saved at %lld", (long long)o->w.now);
	saver_crash(o);
}

static void went_back_behind_a_verified_one(struct saver *o, int64_t iteration, int64_t to)
{
	saver_run(o, 2);
	if (to > 0)
		saver_save(o, to);
	saver_save(o, iteration);
	o->w.scan.items[o->w.scan.n_items - 1].saved_at = o->w.now;
	mo_str_set(&o->w.scan.items[o->w.scan.n_items - 1].manifest, "as the old run saved it");
	saver_crash(o);
	saver_resumed(o, 2, iteration);
	assert_string_equal(checkpoint_find(saver_job(o), iteration)->manifest,
			    "as the old run saved it");
	assert_int_equal(saver_restart(o, to), 200);
	saver_run(o, 5);
	saver_resumed(o, 3, to > 0 ? to : -1);
}

/* What was known of the save that was given up is not true of the one that was written over it. */
static void a_given_up_one_that_is_written_again_is_judged_anew(void **state)
{
	struct saver *o = *state;

	went_back_behind_a_verified_one(o, 20, 10);
	written_again_unheard(o, 20, false);
	saver_resumed(o, 4, 10);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	written_again_unheard(o, 20, true); /* a person completes it */
	saver_resumed(o, 5, 20);
	assert_string_equal(checkpoint_find(saver_job(o), 20)->manifest,
			    o->w.scan.items[1].manifest);
}

static void an_unheard_first_save_after_going_back_is_no_loss(void **state)
{
	struct saver *o = *state;

	went_back_behind_a_verified_one(o, 10, 0);
	written_again_unheard(o, 10, false);
	saver_resumed(o, 4, -1);
}

/* One that is damaged is given up while the file system's clock is off by that much; then the node
 * is lost, and the file is whole, of so much later. */
static void given_up_by_another_clock(struct saver *o, int64_t off, int64_t later)
{
	struct found_checkpoint *f;

	saver_again(o, -1, 0);
	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	f = &o->w.scan.items[1];
	mo_str_set(&f->manifest, "m20");
	f->complete = false;
	f->saved_at = o->w.now + off;
	saver_crash(o);
	saver_resumed(o, 2, 10);
	assert_int_equal(saver_state(o, 20), CKPT_TORN);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 5);
	saver_resumed(o, 3, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
	f->complete = true;
	f->saved_at += later;
	mo_str_set(&f->manifest, "the same files, copied"); /* their inodes are in it */
	world_reboot(&o->w, 0);
	saver_run(o, 5);
}

/* The tracker names it, and nothing of it is there: it was never seen. Then the run that went back
 * saves it, and its node is lost. */
static void a_missing_one_that_is_written_is_the_new_runs(void **state)
{
	struct saver *o = *state;
	struct found_checkpoint *f;

	saver_again(o, -1, 0);
	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	f = &o->w.scan.items[1];
	f->complete = false;
	f->saved_at = MO_NONE;
	saver_crash(o);
	saver_resumed(o, 2, 10);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 5);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
	f->complete = true;
	f->saved_at = o->w.now;
	world_reboot(&o->w, 0);
	saver_run(o, 5);
	saver_resumed(o, 4, 20);
}

/* Whether it was written again is asked of the clock that wrote both times. */
static void the_controllers_clock_does_not_say_what_was_written_again(void **state)
{
	struct saver *o = *state;
	static const int64_t off[] = { -6 * 3600 * S, 6 * 3600 * S };

	for (size_t i = 0; i < ELEMENTSOF(off); i++) {
		given_up_by_another_clock(o, off[i], 60 * S);
		saver_resumed(o, 4, 20);
		given_up_by_another_clock(o, off[i], 0);
		saver_resumed(o, 4, 10);
		assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
	}
}

/* Somebody repairs what the user went back behind: that is no work of an attempt that was heard to
 * its end and did not come that far. */
static void a_repaired_one_is_not_the_new_runs(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	world_iteration(&o->w, 0, o->id, 21);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 5);
	saver_resumed(o, 2, 10);
	written_again_unheard(o, 20, true);
	saver_resumed(o, 3, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
	assert_string_equal(checkpoint_find(saver_job(o), 20)->reason,
			    "changed since it was given up, not by attempt 2, which came to "
			    "iteration 10 only");
	world_reboot(&o->w, 0);
	saver_run(o, 5);
	saver_resumed(o, 4, 10);
	world_iteration(&o->w, 0, o->id, 19);
	written_again_unheard(o, 20, true); /* it was about to come there */
	saver_resumed(o, 5, 20);
}

/* Who repaired it may name it. */
static void a_repaired_one_is_gone_back_to_by_name(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	world_iteration(&o->w, 0, o->id, 21);
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 5);
	saver_resumed(o, 2, 10);
	o->w.scan.items[1].saved_at = o->w.now;
	assert_int_equal(saver_restart(o, 20), 200);
	saver_run(o, 5);
	saver_resumed(o, 3, 20);
}

/* A file system that shows nothing for a while makes nothing of what the user gave up his own
 * again. */
static void a_given_up_one_that_is_not_seen_for_a_while_stays_so(void **state)
{
	struct saver *o = *state;

	went_back_behind_a_verified_one(o, 20, 10);
	o->w.scan.n_items--;
	saver_crash(o);
	saver_resumed(o, 4, 10);
	assert_int_equal(checkpoint_find(saver_job(o), 20)->bytes, 0);
	o->w.scan.n_items++;
	saver_crash(o);
	saver_resumed(o, 5, 10);
	assert_int_equal(saver_state(o, 20), CKPT_SUPERSEDED);
	assert_int_equal(checkpoint_find(saver_job(o), 20)->bytes, 100);
}

static void old_damage_does_not_hold_up_a_spoken_fresh_start(void **state)
{
	struct saver *o = *state;

	world_found(&o->w, 300, false);
	saver_run(o, 5);
	assert_int_equal(saver_restart(o, 0), 200);
	saver_run(o, 5);
	saver_resumed(o, 1, -1);
	saver_crash(o);
	saver_resumed(o, 2, -1);
}

static void a_chosen_one_that_was_damaged_since_is_waited_for(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	saver_save(o, 20);
	o->w.scan.items[0].complete = false;
	o->w.scan.items[0].bytes = 0;
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 60);
	assert_int_equal(saver_job(o)->state, JOB_QUEUED);
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_non_null(strstr(saver_job(o)->reason,
			       "restart --from 10: no complete checkpoint at or before it is left "
			       "in /ckpt: incomplete; bring one back"));
	assert_non_null(strstr(saver_job(o)->reason, "--from 0 to start afresh"));
	o->w.scan.items[0].complete = true;
	saver_run(o, 40);
	saver_resumed(o, 2, 10);
}

static void never_still_recovers_from_its_own(void **state)
{
	struct saver *o = *state;

	saver_again(o, -2, 0);
	world_found(&o->w, 500, true); /* of another job */
	saver_run(o, 2);
	assert_int_equal(saver_job(o)->run.resume, -1);
	saver_save(o, 10);
	saver_crash(o);
	assert_int_equal(saver_job(o)->run.resume, 10);
}

/* Another job that saves to the same place, written otherwise. */
static int64_t second(struct saver *o, const char *dir)
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

static int64_t second_of(struct saver *o, const char *user, const char *dir)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, 1);
	spec.recipe.checkpoint.dir = mo_strdup(dir);
	mo_str_set(&spec.user, user);
	id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	return id;
}

/* Or anybody could keep a directory from its owner by a job that never runs. */
static void a_queued_job_of_another_user_holds_no_directory(void **state)
{
	struct saver *o = *state;
	int64_t first;

	saver_run(o, 2);
	first = second_of(o, "mal", "/ada/run");
	assert_true(first > 0);
	assert_int_equal(second_of(o, "mal", "/ada/run"), -409);
	assert_true(second_of(o, "ada", "/ada/run") > 0);
	/* where a job of anybody runs */
	assert_int_equal(second_of(o, "ada", "/ckpt"), -409);
}

/* A store of before had such jobs: the second was taken, and waits. */
static int64_t taken_before(struct saver *o, const char *dir)
{
	int64_t id = second(o, "/of-its-own");
	struct core *const cores[] = { o->w.core, o->w.shadow };

	for (size_t i = 0; i < ELEMENTSOF(cores); i++) {
		struct job *j = (struct job *)job_find(core_state(cores[i]), id);

		claims_remove_job(cores[i], j);
		mo_str_set(&j->spec.recipe.checkpoint.dir, dir);
		free(j->saves.dir);
		j->saves.dir = mo_path_clean(dir);
		claims_add_job(cores[i], j);
	}
	return id;
}

static void a_second_job_in_the_directory_is_refused(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	assert_int_equal(second(o, "/x/..//ckpt/"), -409);
	assert_string_equal(o->w.reply_text,
			    "checkpoint.dir: /ckpt is that of j-1 (job), which is running: give "
			    "this job another one (--set checkpoint.dir=/path), or submit it when "
			    "j-1 has ended: it then resumes from there");
	assert_true(second(o, "/ckpt2") > 0);
	assert_int_equal(second(o, "/ckpt2"), -409); /* that one waits, and will save there */
	assert_non_null(strstr(o->w.reply_text, "which is queued"));
	world_verb(&o->w, IN_PAUSE, o->id);
	saver_run(o, 3);
	assert_int_equal(second(o, "/ckpt"), -409); /* a paused job goes on from there */
	world_verb(&o->w, IN_CANCEL, o->id);
	saver_run(o, 3);
	assert_true(second(o, "/ckpt") > 0); /* what it left may be resumed */
}

/* Retention of the outer one removes what lies below; the inner one's files are no checkpoints of
 * the outer. */
static void directories_do_not_lie_in_each_other(void **state)
{
	static const struct {
		const char *dir, *says;
	} bad[] = {
		{ "/ckpt/iter_0000010",
		  "/ckpt/iter_0000010 lies below that of j-1 (job), which is running" },
		{ "/ckpt/./a/../b/", "/ckpt/b lies below that of j-1" },
		{ "/", "/ lies above that of j-1" },
	};
	struct saver *o = *state;

	saver_run(o, 2);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		assert_int_equal(second(o, bad[i].dir), -409);
		if (!strstr(o->w.reply_text, bad[i].says))
			fail_msg("%s: %s", bad[i].dir, o->w.reply_text);
		assert_non_null(strstr(o->w.reply_text, "give this job a directory beside it"));
	}
	assert_true(second(o, "/ckpt-2") > 0);
	assert_true(second(o, "/ckp") > 0);
	assert_int_equal(second(o, "/ckp/t"), -409);
	world_verb(&o->w, IN_CANCEL, o->id);
	saver_run(o, 3);
	assert_true(second(o, "/ckpt/a") > 0);
}

/* Nobody keeps a directory from all others by naming the one above: it is reported. */
static void another_users_directory_around_it_is_reported(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	int64_t id = second_of(o, "somebody", "/ckpt/a");

	assert_true(id > 0);
	const struct job *j = world_job(&o->w, id);

	assert_int_equal(j->spec.n_warnings, 2); /* and that their names are one */
	assert_non_null(strstr(j->spec.warnings[0],
			       "/ckpt/a lies below that of j-1 (job, another user's)"));
}

static void a_directory_belongs_to_one_unfinished_job(void **state)
{
	struct saver *o = *state;
	struct why_view why;
	int64_t other;

	world_done(&o->w);
	world_init(&o->w, 2, 2);
	o->id = second(o, "/ckpt");
	saver_run(o, 2);
	assert_int_equal(saver_job(o)->attempt, 1);
	other = taken_before(o, "/x/..//ckpt/");
	saver_run(o, 3);
	assert_int_equal(world_job(&o->w, other)->state, JOB_QUEUED);
	world_waits(&o->w, other, WAITING_DIRECTORY, "checkpoint.dir is held by j-1",
		    "checkpoint.dir is held by j-1");
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(o->w.core), world_job(&o->w, other), o->w.now, &why);
	assert_string_equal(why.reasons[0].code, "checkpoint-in-use");
	assert_string_equal(why.reasons[0].evidence[0], "j-1 (job) is running and saves to /ckpt");
	mo_desc_done(&why_view_desc, &why);
	world_verb(&o->w, IN_PAUSE, o->id);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_PAUSED);
	/* a paused job goes on from there */
	assert_int_equal(world_job(&o->w, other)->state, JOB_QUEUED);
	assert_int_equal(world_job(&o->w, second(o, "/ckpt2"))->attempt, 0);
	saver_run(o, 2);
	/* it keeps nobody else waiting */
	assert_int_equal(world_job(&o->w, other + 1)->attempt, 1);
	world_verb(&o->w, IN_CANCEL, o->id);
	saver_run(o, 3);
	assert_int_equal(world_job(&o->w, other)->attempt, 1);
}

static void what_somebody_else_wrote_is_not_resumed(void **state)
{
	static const int64_t resumes[] = { -1, -2 };

	for (size_t i = 0; i < ELEMENTSOF(resumes); i++) {
		struct saver *o = *state;

		saver_again(o, resumes[i], 0);
		saver_run(o, 2);
		saver_save(o, 10);
		world_iteration(&o->w, 0, o->id, 11);
		saver_run(o, 1);
		world_verb(&o->w, IN_PAUSE, o->id);
		saver_run(o, 3);
		world_found(&o->w, 500, true); /* by a program outside */
		world_found(&o->w, 600, false);
		world_verb(&o->w, IN_RESUME, o->id);
		saver_run(o, 3);
		saver_resumed(o, 2, 10);
		assert_int_equal(saver_state(o, 500), CKPT_SUPERSEDED);
		assert_string_equal(checkpoint_find(saver_job(o), 500)->reason,
				    "not of this job, which came to iteration 11 only");
	}
}

/* An agent and its journal are lost with their node: the job may have saved beyond the last
 * iteration that was reported. */
static void what_was_saved_by_a_lost_node_is_its_own(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	saver_save(o, 10);
	world_found(&o->w, 20, true);
	world_reboot(&o->w, 0);
	saver_run(o, 5);
	saver_resumed(o, 2, 20);
}

static int64_t submit_again(struct saver *o, const char *user, int64_t steps)
{
	struct submit spec;

	world_recipe(&spec, 2);
	mo_str_set(&spec.user, user);
	spec.recipe.steps = steps;
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	spec.engine.layout.announced_is_complete = true;
	int64_t id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	saver_run(o, 2);
	return id;
}

static void all_exit(struct saver *o)
{
	for (int64_t rank = 0; rank < 2; rank++)
		world_exit(&o->w, 0, o->id, rank, 0, 0);
	saver_run(o, 3);
	assert_int_equal(saver_job(o)->state, JOB_COMPLETED);
}

static void assert_next(struct saver *o, int64_t id, const char *words)
{
	struct why_view why;

	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(o->w.core), world_job(&o->w, id), o->w.now, &why);
	if (!strstr(why.next, words))
		fail_msg("next is: %s", why.next);
	mo_desc_done(&why_view_desc, &why);
}

static void an_ended_job_without_a_checkpoint_promises_none(void **state)
{
	struct saver *o = *state;

	world_done(&o->w);
	world_init(&o->w, 1, 8);
	o->id = submit_again(o, "ada", 100);
	world_iteration(&o->w, 0, o->id, 100);
	all_exit(o);
	assert_next(o, o->id, "no checkpoint of it is known: the same recipe begins at 0");
	o->id = submit_again(o, "ada", 100);
	saver_save(o, 100);
	all_exit(o);
	assert_next(o, o->id, "resumes from its last checkpoint");
}

/* The second submit of a recipe that is trained to its end. */
static void a_job_with_nothing_left_says_whose_work_it_found(void **state)
{
	struct saver *o = *state;
	static const char *const users[] = { "ada", "ada", "bob" };

	for (int i = 0; i < 3; i++) {
		world_done(&o->w);
		world_init(&o->w, 1, 2);
		if (i == 0)
			/* it lies there, and no job of this controller wrote it */
			world_found(&o->w, 10, true);
		o->id = submit_again(o, "ada", 10);
		if (i)
			saver_save(o, 10);
		all_exit(o);
		assert_true((saver_job(o)->reason == NULL) == (i > 0));
		o->id = submit_again(o, users[i], 10);
		saver_resumed(o, 1, 10);
		all_exit(o);
		world_why_has(&o->w, o->id, "nothing was left to do");
		world_why_has(&o->w, o->id,
			      i == 0   ? "an earlier run had"
			      : i == 1 ? "j-1 had come to iteration 10 of 10"
				       : "j-1 of ada had");
		world_why_has(&o->w, o->id, "checkpoint.resume=never");
	}
}

static void a_job_that_trains_on_says_nothing_of_it(void **state)
{
	struct saver *o = *state;

	world_found(&o->w, 10, true);
	world_verb(&o->w, IN_CANCEL, 1);
	saver_run(o, 3);
	o->id = submit_again(o, "ada", 20);
	saver_run(o, 3);
	saver_resumed(o, 1, 10);
	world_iteration(&o->w, 0, o->id, 20);
	all_exit(o);
	assert_null(saver_job(o)->reason);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)
	const struct CMUnitTest tests[] = {
		T(a_new_job_resumes_from_what_lies_there),
		T(a_scan_carries_the_right_to_be_root),
		T(nothing_there_is_a_fresh_start),
		T(everything_damaged_waits),
		T(restart_from_0_is_a_spoken_fresh_start),
		T(a_named_one_that_is_missing_fails),
		T(what_does_not_reshard_needs_its_sizes),
		T(what_the_engine_would_mix_waits),
		cmocka_unit_test(experts_without_a_word_are_split_as_the_rest),
		cmocka_unit_test(experts_of_the_command_are_not_guessed),
		T(unwritable_and_unreadable),
		T(recovery_takes_the_newest_complete),
		T(lost_checkpoints_are_not_a_fresh_start),
		T(an_unfinished_first_save_is_no_loss),
		T(restart_from_takes_the_newest_at_most),
		T(what_the_user_went_back_behind_is_superseded),
		T(an_unchanged_one_that_was_passed_stays_superseded),
		T(damage_behind_the_chosen_one_is_given_up),
		T(a_given_up_one_that_is_written_again_is_judged_anew),
		T(an_unheard_first_save_after_going_back_is_no_loss),
		T(the_controllers_clock_does_not_say_what_was_written_again),
		T(a_missing_one_that_is_written_is_the_new_runs),
		T(a_repaired_one_is_not_the_new_runs),
		T(a_repaired_one_is_gone_back_to_by_name),
		T(a_given_up_one_that_is_not_seen_for_a_while_stays_so),
		T(old_damage_does_not_hold_up_a_spoken_fresh_start),
		T(a_chosen_one_that_was_damaged_since_is_waited_for),
		T(never_still_recovers_from_its_own),
		T(a_second_job_in_the_directory_is_refused),
		T(directories_do_not_lie_in_each_other),
		T(another_users_directory_around_it_is_reported),
		T(a_queued_job_of_another_user_holds_no_directory),
		T(a_directory_belongs_to_one_unfinished_job),
		T(what_somebody_else_wrote_is_not_resumed),
		T(what_was_saved_by_a_lost_node_is_its_own),
		T(an_ended_job_without_a_checkpoint_promises_none),
		T(a_job_with_nothing_left_says_whose_work_it_found),
		T(a_job_that_trains_on_says_nothing_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
