/* Files that look like a model's state and that no layout reads: never a silent fresh start over
 * them, before the first launch and before a restart. */
#include "tests/unit/dcore/saver.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_view.h"

#include <signal.h>
#include <string.h>

static void lies_there(struct saver *o, const char *name, int64_t saved_at, int64_t iteration)
{
	struct unread_state *u = MO_ADD(&o->w.scan, unread, &unread_state_desc);

	u->name = mo_strdup(name);
	u->bytes = 3 << 20;
	u->saved_at = saved_at * S;
	u->iteration = iteration;
}

static void assert_waits(struct saver *o, int state, const char *name)
{
	const struct job *j = saver_job(o);
	struct why_view why;

	assert_int_equal(j->state, state);
	assert_int_equal(j->run.n_places, 0);
	world_waits(&o->w, o->id, WAITING_UNREAD, j->reason, j->reason);
	mo_desc_init(&why_view_desc, &why);
	job_why(core_state(o->w.core), j, o->w.now, &why);
	for (size_t i = 0; i < why.n_reasons; i++)
		if (mo_streq(why.reasons[i].code, "checkpoint-unread")) {
			assert_non_null(strstr(why.reasons[i].text, name));
			assert_non_null(strstr(why.reasons[i].evidence[0], name));
			for (const char *const *way =
				     (const char *const[]){ "checkpoint.layout", "--from 0",
							    "another checkpoint.dir", NULL };
			     *way; way++) {
				assert_non_null(strstr(why.reasons[i].text, *way));
				assert_non_null(strstr(why.next, *way));
			}
			mo_desc_done(&why_view_desc, &why);
			return;
		}
	fail_msg("why has no reason checkpoint-unread: %s", why.verdict);
}

static void a_new_job_waits_for_a_word(void **state)
{
	struct saver *o = *state;

	lies_there(o, "ckpt.pt", 5, MO_NONE);
	saver_run(o, 100);
	assert_waits(o, JOB_QUEUED, "ckpt.pt");
	assert_int_equal(world_events(&o->w, "checkpoint.unread"), 1);
	assert_int_equal(saver_restart(o, 0), 200);
	saver_run(o, 5);
	saver_resumed(o, 1, -1);
}

/* A long name is cut behind a whole character (the shadow's reason is the same text), and none is
 * said as such. */
static void names_of_any_kind(void **state)
{
	struct saver *o = *state;
	char name[256] = "";

	for (size_t i = 0; i + 3 < sizeof(name) - 1; i += 3)
		memcpy(name + i, "\u20ac", 3);
	lies_there(o, name, 5, MO_NONE);
	lies_there(o, NULL, 5, MO_NONE);
	saver_run(o, 10);
	assert_waits(o, JOB_QUEUED, "\u20ac\u20ac");
	assert_non_null(strstr(saver_job(o)->reason, "\u20ac (3.0 MiB), ? (3.0 MiB)"));
}

static void gone_again_it_starts(void **state)
{
	struct saver *o = *state;

	lies_there(o, "ckpt.pt", 5, MO_NONE);
	saver_run(o, 10);
	assert_waits(o, JOB_QUEUED, "ckpt.pt");
	mo_vec_clear(&unread_state_desc, (void **)&o->w.scan.unread, &o->w.scan.n_unread);
	saver_run(o, 60);
	saver_resumed(o, 1, -1);
}

static void never_is_a_word_for_what_lay_there_only(void **state)
{
	struct saver *o = *state;

	saver_again(o, -2, 0);
	lies_there(o, "ckpt.pt", 5, MO_NONE);
	saver_run(o, 3);
	saver_resumed(o, 1, -1);
	saver_crash(o);
	saver_resumed(o, 2, -1); /* it is as it was */
	saver_run(o, 3);
	world_iteration(&o->w, 0, o->id, 40);
	saver_run(o, 1);
	o->w.scan.unread[0].saved_at += 60 * S; /* written by the job */
	saver_crash(o);
	saver_run(o, 5);
	assert_waits(o, JOB_RECOVERING, "ckpt.pt");
	world_crash(&o->w);
	saver_run(o, 5);
	assert_waits(o, JOB_RECOVERING, "ckpt.pt");
	assert_int_equal(saver_restart(o, 0), 200);
	saver_run(o, 5);
	saver_resumed(o, 3, -1);
}

static void what_can_be_read_is_resumed(void **state)
{
	struct saver *o = *state;

	lies_there(o, "export.safetensors", 5, MO_NONE);
	world_found(&o->w, 100, true);
	saver_run(o, 3);
	saver_resumed(o, 1, 100);
	assert_int_equal(world_events(&o->w, "checkpoint.unread"), 0);
}

/* checkpoint-500/ of a script that writes no COMPLETE: the layout calls it torn. */
static void entries_without_their_marker(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	world_iteration(&o->w, 0, o->id, 700);
	saver_run(o, 1);
	world_found(&o->w, 500, false);
	lies_there(o, "checkpoint-500/", 5, 500);
	saver_crash(o);
	saver_run(o, 5);
	assert_waits(o, JOB_RECOVERING, "checkpoint-500/");
}

/* The job died in its first save, and saves as the layout says: nothing was there before it. */
static void a_first_save_that_was_cut_is_no_loss(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	world_iteration(&o->w, 0, o->id, 20);
	saver_run(o, 1);
	world_found(&o->w, 20, false);
	lies_there(o, "20/", 5, 20);
	saver_crash(o);
	saver_resumed(o, 2, -1);
	saver_crash(o);
	saver_run(o, 5);
	assert_true(saver_job(o)->attempt > 2 || saver_job(o)->state == JOB_FAILED);
}

static void lies_elsewhere(struct saver *o, const char *where, const char *name)
{
	lies_there(o, name, 5, 100);
	mo_str_set(&o->w.scan.unread[o->w.scan.n_unread - 1].where, where);
}

/* checkpoint.dir is /ckpt: one checkpoint itself, or below the directory that the recipe named. */
static void what_lies_elsewhere_holds_it_up_as_well(void **state)
{
	static const struct {
		const char *where, *name, *words;
	} cases[] = {
		{ "/", "ckpt/", "checkpoint.dir is one checkpoint: /ckpt/ (3.0 MiB); engine" },
		{ "/", "iter_0000100/",
		  "and not what lies above it: /iter_0000100/ (3.0 MiB); move it" },
		{ "/", "ckpt2/", "and not what lies above it: /ckpt2/" },
	};
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct why_view why;

		saver_again(o, -1, 0);
		lies_elsewhere(o, cases[i].where, cases[i].name);
		saver_run(o, 100);
		assert_int_equal(saver_job(o)->state, JOB_QUEUED);
		assert_non_null(strstr(saver_job(o)->reason, cases[i].words));
		mo_desc_init(&why_view_desc, &why);
		job_why(core_state(o->w.core), saver_job(o), o->w.now, &why);
		assert_string_equal(why.reasons[0].code, "checkpoint-unread");
		assert_non_null(strstr(why.next, "--from 0"));
		assert_null(strstr(why.next, "checkpoint.layout"));
		mo_desc_done(&why_view_desc, &why);
		assert_int_equal(saver_restart(o, 0), 200);
		saver_run(o, 5);
		saver_resumed(o, 1, -1);
		o->w.scan.unread[0].bytes += 4096; /* the job's own files in that directory */
		o->w.scan.unread[0].saved_at += S;
		saver_crash(o);
		saver_resumed(o, 2, -1);
	}
}

/* Before there is a job its decision is asked for: the same one, without the job's own verbs. */
static void what_a_job_would_do(void **state)
{
	struct saver *o = *state;
	const struct engine *e = &saver_job(o)->spec.engine;
	struct mo_error err = { 0 };
	int64_t resume = MO_NONE;

	assert_int_equal(checkpoint_would(e, "/ckpt", false, &o->w.scan, &resume, &err), 0);
	assert_int_equal(resume, -1);
	world_found(&o->w, 20, false);
	assert_int_equal(checkpoint_would(e, "/ckpt", false, &o->w.scan, &resume, &err), 1);
	assert_non_null(strstr(err.text, "every checkpoint in /ckpt is damaged"));
	assert_non_null(strstr(err.text, "checkpoint.resume: never"));
	assert_null(strstr(err.text, "j-"));
	mo_error_done(&err);
	lies_there(o, "ckpt.pt", 5, MO_NONE);
	assert_int_equal(checkpoint_would(e, "/ckpt", false, &o->w.scan, &resume, &err), 1);
	assert_non_null(strstr(err.text, "ckpt.pt (3.0 MiB)"));
	mo_error_done(&err);
	world_found(&o->w, 10, true);
	assert_int_equal(checkpoint_would(e, "/ckpt", false, &o->w.scan, &resume, &err), 0);
	assert_int_equal(resume, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_job_waits_for_a_word, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(gone_again_it_starts, saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(names_of_any_kind, saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(never_is_a_word_for_what_lay_there_only,
						saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(what_can_be_read_is_resumed, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(entries_without_their_marker, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(what_lies_elsewhere_holds_it_up_as_well,
						saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(what_a_job_would_do, saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(a_first_save_that_was_cut_is_no_loss, saver_setup,
						saver_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
