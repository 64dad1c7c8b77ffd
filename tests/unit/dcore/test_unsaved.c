/* A running job that has not saved where it should, and where a paused one goes on. */
#include "tests/unit/dcore/saver.h"

#include <string.h>

#include "daemon/core/view/view.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_view.h"

static void begin(struct saver *o, bool dir, int64_t resume)
{
	struct submit spec;

	world_done(&o->w);
	world_init(&o->w, 1, 2);
	world_recipe(&spec, 2);
	if (dir)
		spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.every = 20;
	spec.recipe.checkpoint.resume = resume;
	spec.engine.layout.announced_is_complete = true;
	o->id = world_submit(&o->w, &spec);
	mo_desc_done(&submit_desc, &spec);
	saver_run(o, 2);
}

static void comes_to(struct saver *o, int64_t iteration)
{
	world_iteration(&o->w, 0, o->id, iteration);
	saver_run(o, 1);
}

static void saves(struct saver *o, int kind, int64_t iteration, const char *path)
{
	struct note *n = world_note(&o->w, 0, o->id, kind);

	n->iteration = iteration;
	n->path = mo_strdup(path);
	saver_run(o, 1);
}

/* Both documents tell the same, or neither does: words of the text, and of what is known of the
 * last save. */
static void tells(struct saver *o, const char *text, const char *last)
{
	struct why_view why;
	struct job_view view;
	const struct why_reason *r = NULL;

	mo_desc_init(&why_view_desc, &why);
	mo_desc_init(&job_view_desc, &view);
	job_why(core_state(o->w.core), saver_job(o), o->w.now, &why);
	job_view(core_state(o->w.core), saver_job(o), o->w.now, &view);
	for (size_t i = 0; i < why.n_reasons; i++)
		r = mo_streq(why.reasons[i].code, "checkpoint-late") ? &why.reasons[i] : r;
	assert_true(!r == !text);
	assert_true(!view.checkpoint_late == !text);
	if (text) {
		assert_string_equal(r->text, text);
		assert_non_null(strstr(r->evidence[0], last));
		assert_non_null(strstr(view.checkpoint_late, text));
		assert_non_null(strstr(view.checkpoint_late, last));
		assert_non_null(strstr(why.next, "a failure now goes back to"));
	} else if (saver_job(o)->state == JOB_RUNNING) {
		assert_string_equal(why.next, "nothing to do");
	}
	mo_desc_done(&why_view_desc, &why);
	mo_desc_done(&job_view_desc, &view);
}

static void two_intervals_without_a_save_are_reported(void **state)
{
	struct saver *o = *state;

	begin(o, true, -1);
	tells(o, NULL, NULL);
	comes_to(o, 41);
	tells(o, NULL, NULL);
	comes_to(o, 65);
	tells(o,
	      "no complete checkpoint in /ckpt since the start: 65 iterations, 3 save intervals of "
	      "20",
	      "no save was announced");
	saves(o, NOTE_SAVING, 65, "/ckpt/65");
	tells(o,
	      "no complete checkpoint in /ckpt since the start: 65 iterations, 3 save intervals of "
	      "20",
	      "the save of 65 began, and its end was not reported");
	saves(o, NOTE_CHECKPOINT, 65, "/ckpt/65");
	tells(o, NULL, NULL);
	comes_to(o, 205);
	tells(o,
	      "no complete checkpoint in /ckpt since iteration 65: 140 iterations, 7 save "
	      "intervals of 20",
	      "no save was announced");
	begin(o, false, -1);
	comes_to(o, 500);
	tells(o, NULL, NULL);
}

static void a_refused_save_is_reported_at_once(void **state)
{
	struct saver *o = *state;

	begin(o, true, -1);
	comes_to(o, 20);
	saves(o, NOTE_CHECKPOINT, 20, "/elsewhere/20");
	tells(o, "no complete checkpoint in /ckpt since the start: 20 iterations",
	      "at iteration 20 was refused: it went to /elsewhere/20, which is not in "
	      "checkpoint.dir");
	comes_to(o, 40);
	saves(o, NOTE_CHECKPOINT, 40, "40");
	tells(o,
	      "no complete checkpoint in /ckpt since the start: 40 iterations, 2 save intervals of "
	      "20",
	      "at iteration 40 was refused: it went to 40,");
	saves(o, NOTE_CHECKPOINT, 40, "/ckpt/40");
	tells(o, NULL, NULL);
}

static int64_t resumes_at(struct saver *o)
{
	struct job_view view;
	int64_t at;

	mo_desc_init(&job_view_desc, &view);
	job_view(core_state(o->w.core), saver_job(o), o->w.now, &view);
	at = view.resumes_at;
	mo_desc_done(&job_view_desc, &view);
	return at;
}

static void a_paused_job_says_where_it_goes_on(void **state)
{
	static const struct {
		int64_t resume;
		bool found, saved;
		int64_t at;
	} cases[] = {
		{ -1, false, false, 0 }, { -1, true, false, 10 }, { -1, true, true, 20 },
		{ -2, true, false, 0 },  { -2, true, true, 20 },  { 10, true, false, 10 },
	};
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {

		world_done(&o->w);
		world_init(&o->w, 1, 2);
		struct submit spec;

		world_recipe(&spec, 2);
		spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
		spec.recipe.checkpoint.resume = cases[i].resume;
		spec.engine.layout.announced_is_complete = true;
		if (cases[i].found)
			world_found(&o->w, 10, true);
		o->id = world_submit(&o->w, &spec);
		mo_desc_done(&submit_desc, &spec);
		saver_run(o, 2);
		comes_to(o, 20);
		if (cases[i].saved)
			saves(o, NOTE_CHECKPOINT, 20, "/ckpt/20");
		comes_to(o, 35);
		assert_int_equal(resumes_at(o), MO_NONE);
		world_verb(&o->w, IN_PAUSE, o->id);
		saver_run(o, 200);
		assert_int_equal(saver_job(o)->state, JOB_PAUSED);
		assert_int_equal(resumes_at(o), cases[i].at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_intervals_without_a_save_are_reported,
						saver_setup, saver_teardown),
		cmocka_unit_test_setup_teardown(a_refused_save_is_reported_at_once, saver_setup,
						saver_teardown),
		cmocka_unit_test_setup_teardown(a_paused_job_says_where_it_goes_on, saver_setup,
						saver_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
