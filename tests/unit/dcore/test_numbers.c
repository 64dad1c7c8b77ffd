/* Losses that are no numbers, or far too high: what is an event, what taints a checkpoint, when the
 * job goes back and where to, and what no loss means. */
#include "tests/unit/dcore/saver.h"

#include <math.h>
#include <string.h>

#include "daemon/core/state/numbers.h"
#include "daemon/core/state/shared_words.h"

static struct sample *sample(struct saver *o, int64_t iteration)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_SAMPLE);

	n->sample = mo_desc_new(&sample_desc);
	n->sample->iteration = iteration;
	return n->sample;
}

static void loss(struct saver *o, int64_t iteration, double value)
{
	sample(o, iteration)->loss = value;
	saver_run(o, 1);
}

/* From one iteration to the one before another; good ones have some noise. */
static void losses(struct saver *o, int64_t from, int64_t to, double value)
{
	for (int64_t i = from; i < to; i++)
		sample(o, i)->loss = isfinite(value) ? value + 0.01 * (double)(i % 5) : value;
	saver_run(o, 1);
}

static void save(struct saver *o, int64_t iteration)
{
	struct note *n = world_note(&o->w, 0, o->id, NOTE_CHECKPOINT);

	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&o->w, iteration, true);
	for (size_t i = 0; i < o->w.scan.n_items; i++)
		if (o->w.scan.items[i].iteration == iteration) {
			free(o->w.scan.items[i].manifest);
			o->w.scan.items[i].manifest = mo_printf("m%lld-%lld", (long long)iteration,
								(long long)saver_job(o)->attempt);
		}
	saver_run(o, 1);
}

static bool tainted(const struct saver *o, int64_t iteration)
{
	return checkpoint_tainted(checkpoint_find(saver_job(o), iteration));
}

static bool says(const struct saver *o, const char *type, const char *text)
{
	const struct state *st = core_state(o->w.core);

	for (size_t i = 0; i < st->n_events; i++)
		if (mo_streq(st->events[i].type, type) && strstr(st->events[i].message, text))
			return true;
	return false;
}

static size_t events(struct saver *o, const char *type)
{
	return world_events(&o->w, type);
}

/* It has saved at 10 and 20 and is at 24. */
static void begun(struct saver *o)
{
	saver_run(o, 2);
	losses(o, 1, 11, 2.0);
	save(o, 10);
	losses(o, 11, 21, 2.0);
	save(o, 20);
	losses(o, 21, 25, 2.0);
}

static void one_nan_is_an_event(void **state)
{
	struct saver *o = *state;

	begun(o);
	loss(o, 25, NAN);
	assert_int_equal(events(o, "loss.nan"), 1);
	assert_true(numbers_bad(saver_job(o)));
	world_why_has(&o->w, o->id, "the loss is no number since iteration 25");
	losses(o, 26, 40, 2.0);
	assert_false(numbers_bad(saver_job(o)));
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_int_equal(saver_job(o)->n_incidents, 0);
	assert_int_equal(events(o, "checkpoint.tainted"), 0);
	/* now and then: told of once in a hundred iterations */
	for (int64_t i = 40; i < 120; i++)
		loss(o, i, i % 2 ? 2.0 : -INFINITY);
	assert_int_equal(events(o, "loss.nan"), 1);
	for (int64_t i = 120; i < 140; i++)
		loss(o, i, i % 2 ? 2.0 : NAN);
	assert_int_equal(events(o, "loss.nan"), 2);
	assert_int_equal(saver_job(o)->n_incidents, 0);
}

static void nan_that_stays_goes_back(void **state)
{
	struct saver *o = *state;
	const struct incident *inc;

	begun(o);
	losses(o, 25, 28, NAN);
	save(o, 27);
	assert_true(tainted(o, 27));
	assert_false(tainted(o, 20));
	assert_int_equal(events(o, "checkpoint.tainted"), 1);
	losses(o, 28, 29, INFINITY);
	assert_int_equal(saver_job(o)->attempt, 1);
	world_why_has(&o->w, o->id, "checkpoint 27 is tainted, and not resumed from");
	losses(o, 29, 30, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	assert_int_equal(saver_job(o)->restarts, 1);
	assert_true(tainted(o, 27));
	inc = &saver_job(o)->incidents[0];
	assert_string_equal(inc->class, "numerical");
	assert_string_equal(inc->cause, "loss NaN");
	assert_int_equal(inc->first_rank, MO_NONE);
	assert_string_equal(inc->evidence[0], "the loss is no number since iteration 25");
	assert_string_equal(inc->evidence[1], "5 in a row; the last good one was of iteration 24");
	assert_string_equal(inc->evidence[2], "checkpoint 27 is tainted");
	/* what was tainted stays so until it is written again */
	losses(o, 21, 27, 2.0);
	saver_crash(o);
	saver_resumed(o, 3, 20);
	assert_true(tainted(o, 27));
	losses(o, 21, 28, 2.0);
	save(o, 27);
	assert_false(tainted(o, 27));
	saver_crash(o);
	saver_resumed(o, 4, 27);
}

/* The step of the last good loss may have broken the weights that the next one is of. */
static void what_was_saved_at_the_last_good_loss_is_tainted(void **state)
{
	struct saver *o = *state;

	begun(o);
	save(o, 24);
	loss(o, 25, NAN);
	assert_true(tainted(o, 24));
	assert_int_equal(events(o, "checkpoint.tainted"), 1);
	loss(o, 26, 2.0);
	assert_false(tainted(o, 24));
	losses(o, 27, 40, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 24);
	/* at the first loss behind it: it is what brings it */
	losses(o, 25, 30, NAN);
	saver_run(o, 4);
	saver_resumed(o, 3, 20);
	assert_true(tainted(o, 24));
}

/* A rank that dies meanwhile: the checkpoint of the bad time is passed over all the same. */
static void a_crash_in_between(void **state)
{
	struct saver *o = *state;

	begun(o);
	loss(o, 25, NAN);
	save(o, 25);
	saver_crash(o);
	saver_resumed(o, 2, 20);
}

static void the_same_place_ends_it(void **state)
{
	struct saver *o = *state;

	begun(o);
	for (int64_t attempt = 1; attempt <= 3; attempt++) {
		assert_int_equal(saver_job(o)->attempt, attempt);
		losses(o, 21, 26, 2.0);
		losses(o, 26, 40, NAN);
		saver_run(o, 10);
	}
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	assert_non_null(strstr(saver_job(o)->reason,
			       "the loss is no number since iteration 26, and the job went back "
			       "from there 2 times before: it is the data or the model"));
	/* a person may try again */
	assert_int_equal(saver_restart(o, 10), 200);
	saver_run(o, 4);
	saver_resumed(o, 4, 10);
	assert_int_equal(saver_job(o)->progress.numbers->rollbacks, 0);
}

/* With good checkpoints behind the place it is another one. */
static void another_place_counts_anew(void **state)
{
	struct saver *o = *state;

	begun(o);
	for (int64_t k = 0; k < 5; k++) {
		assert_int_equal(saver_job(o)->attempt, k + 1);
		losses(o, 21 + 20 * k, 36 + 20 * k, 2.0);
		save(o, 30 + 20 * k);
		losses(o, 36 + 20 * k, 41 + 20 * k, 2.0);
		save(o, 40 + 20 * k);
		losses(o, 41 + 20 * k, 46 + 20 * k, 2.0);
		losses(o, 46 + 20 * k, 52 + 20 * k, NAN);
		saver_run(o, 10);
		saver_resumed(o, k + 2, 40 + 20 * k);
	}
	assert_int_equal(saver_job(o)->progress.numbers->rollbacks, 1);
}

static void recipe_says_how_often_and_what(void **state)
{
	struct saver *o = *state;

	saver_losses(o, NULL, MO_NONE_F, 0);
	begun(o);
	losses(o, 25, 35, NAN);
	saver_run(o, 5);
	assert_int_equal(saver_job(o)->state, JOB_FAILED);
	saver_losses(o, "none", MO_NONE_F, MO_NONE);
	begun(o);
	losses(o, 25, 35, NAN);
	save(o, 34);
	saver_run(o, 5);
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_false(tainted(o, 34));
	assert_int_equal(events(o, "loss.nan"), 0);
}

static void spikes(struct saver *o, int64_t n)
{
	begun(o);
	losses(o, 25, 25 + n, 9.0);
	save(o, 24 + n);
}

static void a_spike_that_comes_back_is_an_event(void **state)
{
	struct saver *o = *state;

	saver_losses(o, "rollback", MO_NONE_F, MO_NONE);
	spikes(o, 5);
	assert_int_equal(events(o, "loss.spike"), 1);
	assert_true(tainted(o, 29));
	losses(o, 30, 40, 2.5);
	assert_false(tainted(o, 29));
	assert_int_equal(saver_job(o)->attempt, 1);
	/* twice as high is none, unless the recipe says so */
	losses(o, 40, 60, 4.0);
	assert_int_equal(events(o, "loss.spike"), 1);
	assert_int_equal(saver_job(o)->attempt, 1);
	saver_losses(o, "rollback", 1.5, MO_NONE);
	begun(o);
	losses(o, 25, 60, 4.0);
	saver_run(o, 5);
	saver_resumed(o, 2, 20);
}

static void a_spike_that_stays(void **state)
{
	struct saver *o = *state;

	saver_losses(o, "rollback", MO_NONE_F, MO_NONE);
	spikes(o, 15);
	assert_int_equal(saver_job(o)->attempt, 1);
	world_why_has(&o->w, o->id, "the loss is too high since iteration 25: 9, where 2.02 was");
	losses(o, 40, 41, 9.0);
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	assert_string_equal(saver_job(o)->incidents[0].cause, "loss too high");
	/* reported, and no more: after a while it is how high the loss is */
	saver_again(o, -1, 0);
	spikes(o, 63);
	assert_true(tainted(o, 87));
	losses(o, 88, 90, 9.0);
	assert_false(tainted(o, 87));
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_int_equal(events(o, "loss.spike"), 1);
	losses(o, 90, 91, NAN);
	losses(o, 91, 92, 9.0);
	assert_false(numbers_bad(saver_job(o)));
}

/* What looks like a spike and is none. */
static void no_spikes(void **state)
{
	static const struct {
		double from, to;
	} cases[] = {
		{ 11.0, 3.0 },  /* the first iterations fall steeply */
		{ 1e-7, 1e-3 }, /* near 0 a multiple says nothing */
		{ -5.0, -4.9 }, /* some losses are negative, */
		{ -0.2, 0.1 },  /* or change their sign */
		{ 2.0, 5.9 },   /* below the factor */
	};
	struct saver *o = *state;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		saver_losses(o, "rollback", MO_NONE_F, MO_NONE);
		saver_run(o, 2);
		for (int64_t k = 1; k < 31; k++)
			sample(o, k)->loss = cases[i].from;
		for (int64_t k = 31; k < 60; k++)
			sample(o, k)->loss = cases[i].to;
		saver_run(o, 4);
		assert_int_equal(saver_job(o)->attempt, 1);
		assert_int_equal(events(o, "loss.spike"), 0);
	}
	/* noise that is as large as that, and a fall into negative ones */
	saver_again(o, -1, 0);
	saver_run(o, 2);
	for (int64_t k = 1; k < 80; k++)
		sample(o, k)->loss = k % 3 ? 0.5 : 1.9;
	sample(o, 80)->loss = 2.0;
	for (int64_t k = 81; k < 110; k++)
		sample(o, k)->loss = -5.0 + 0.1 * (double)(k % 4);
	saver_run(o, 2);
	assert_int_equal(events(o, "loss.spike"), 0);
}

static void too_few_say_nothing(void **state)
{
	struct saver *o = *state;

	saver_losses(o, "rollback", MO_NONE_F, MO_NONE);
	saver_run(o, 2);
	losses(o, 1, 20, 2.0);
	losses(o, 20, 21, 50.0);
	assert_int_equal(events(o, "loss.spike"), 0);
	/* nor does the level of the attempt before: at a resume it may jump */
	losses(o, 21, 50, 2.0);
	save(o, 49);
	saver_crash(o);
	saver_resumed(o, 2, 49);
	losses(o, 50, 80, 9.0);
	assert_int_equal(saver_job(o)->attempt, 2);
	assert_int_equal(events(o, "loss.spike"), 0);
}

/* fp16: at its start the engine finds its loss scale, and skips what overflows. */
static void skipped_is_no_failure(void **state)
{
	struct saver *o = *state;
	struct sample *s;

	saver_run(o, 2);
	for (int64_t i = 1; i < 40; i++) {
		s = sample(o, i);
		s->loss = i < 30 ? 0 : 2.0;
		s->skipped = i < 30;
		s->nan = 0;
	}
	/* one of ten iterations of a line was NaN, and skipped */
	s = sample(o, 40);
	s->loss = 2.0;
	s->skipped = s->nan = 1;
	saver_run(o, 2);
	assert_int_equal(events(o, "loss.nan") + events(o, "loss.spike"), 0);
	for (int64_t i = 41; i < 45; i++) {
		s = sample(o, i);
		s->loss = 0;
		s->skipped = s->nan = 1;
	}
	saver_run(o, 2);
	assert_int_equal(events(o, "loss.nan"), 1);
	assert_int_equal(saver_job(o)->n_incidents, 0);
	/* without end it is one */
	s = sample(o, 45);
	s->loss = 0;
	s->skipped = s->nan = 1;
	saver_run(o, 4);
	assert_int_equal(saver_job(o)->n_incidents, 1);
}

/* Megatron leaves a NaN out; a program that calls its loss otherwise prints none either. */
static void no_loss_is_no_nan(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	for (int64_t i = 1; i < 40; i++)
		sample(o, i)->grad_norm = 1;
	saver_run(o, 2);
	assert_null(saver_job(o)->progress.numbers);
	saver_leaves_nan_out(o);
	saver_run(o, 2);
	losses(o, 1, 40, NAN);
	save(o, 39);
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_false(tainted(o, 39));
	assert_int_equal(events(o, "loss.nan"), 1);
	assert_true(says(o, "loss.nan", "or the engine prints none"));
	/* it does say losses */
	losses(o, 40, 42, 2.0);
	losses(o, 42, 47, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 39);
}

/* An old attempt's last words, iterations told twice, pieces of one that come one by one. */
static void only_news_is_judged(void **state)
{
	struct saver *o = *state;

	begun(o);
	sample(o, 25)->grad_norm = 1;
	saver_run(o, 1);
	for (int i = 0; i < 8; i++)
		loss(o, 25, NAN);
	loss(o, 24, NAN);
	assert_int_equal(saver_job(o)->progress.numbers->row, 1);
	assert_int_equal(saver_job(o)->attempt, 1);
	losses(o, 26, 30, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, 20);
	losses(o, 21, 26, 2.0);
	assert_false(numbers_bad(saver_job(o)));
}

/* Nothing that is good is left: no silent fresh start. */
static void all_tainted_waits_for_a_person(void **state)
{
	struct saver *o = *state;

	saver_run(o, 2);
	losses(o, 1, 10, 2.0);
	losses(o, 10, 13, NAN);
	save(o, 12);
	losses(o, 13, 16, NAN);
	saver_run(o, 10);
	assert_int_equal(saver_job(o)->state, JOB_RECOVERING);
	assert_non_null(strstr(saver_job(o)->reason,
			       "checkpoint 12 in /ckpt is tainted, and no other one is left: saved "
			       "by attempt 1 when the loss is no number since iteration 10"));
	assert_int_equal(saver_restart(o, 12), 200);
	saver_run(o, 5);
	saver_resumed(o, 2, 12);
	losses(o, 13, 15, 2.0);
	assert_false(tainted(o, 12));
	/* and without any the beginning is where it goes back to */
	saver_again(o, -1, 0);
	saver_run(o, 2);
	losses(o, 1, 10, 2.0);
	losses(o, 10, 15, NAN);
	saver_run(o, 4);
	saver_resumed(o, 2, -1);
}

/* An engine that announces nothing: what lies there is told by the scan. */
static void what_a_scan_finds_is_tainted(void **state)
{
	struct saver *o = *state;

	saver_strict(o);
	saver_run(o, 2);
	losses(o, 1, 21, 2.0);
	world_found(&o->w, 10, true);
	losses(o, 21, 25, NAN);
	world_found(&o->w, 24, true);
	losses(o, 25, 26, NAN);
	saver_run(o, 5);
	saver_resumed(o, 2, 10);
	assert_true(tainted(o, 24));
	assert_int_equal(events(o, "checkpoint.tainted"), 1);
}

/* Nobody knows which attempt wrote what a scan finds behind a restore. */
static void what_was_saved_behind_a_backup_names_no_attempt(void **state)
{
	struct saver *o = *state;
	const struct checkpoint *c;

	saver_strict(o);
	saver_run(o, 2);
	losses(o, 1, 21, 2.0);
	world_found(&o->w, 10, true);
	losses(o, 21, 23, NAN);
	world_restored(&o->w);
	world_found(&o->w, 30, true);
	world_reboot(&o->w, 0);
	saver_run(o, 90);
	assert_int_equal(saver_job(o)->run.resume, 10);
	c = checkpoint_find(saver_job(o), 30);
	assert_true(checkpoint_tainted(c));
	assert_int_equal(c->attempt, 0);
	assert_string_equal(c->tainted, "saved behind the backup that was restored; in attempt 1 "
					"the loss is no number since iteration 21");
}

/* The next job in that directory begins with a ledger of its own, and knows it all the same; files
 * that somebody wrote since are others. */
static void the_next_job_knows_it(void **state)
{
	struct saver *o = *state;
	struct submit spec;

	for (int again = 0; again < 2; again++) {
		saver_losses(o, NULL, MO_NONE_F, 0);
		begun(o);
		losses(o, 25, 27, NAN);
		save(o, 26);
		losses(o, 27, 35, NAN);
		saver_run(o, 5);
		assert_int_equal(saver_job(o)->state, JOB_FAILED);
		for (size_t i = 0; again && i < o->w.scan.n_items; i++)
			o->w.scan.items[i].saved_at = o->w.now + 100 * S;
		mo_desc_init(&submit_desc, &spec);
		mo_desc_copy(&submit_desc, &spec, &saver_job(o)->spec);
		o->id = world_submit(&o->w, &spec);
		mo_desc_done(&submit_desc, &spec);
		saver_run(o, 3);
		saver_resumed(o, 1, again ? 26 : 20);
		assert_int_equal(tainted(o, 26), !again);
	}
}

/* checkpoint.keep neither removes the good one nor counts those that are of no use. */
static void keep_leaves_the_good_one(void **state)
{
	struct saver *o = *state;

	saver_again(o, -1, 1);
	begun(o);
	losses(o, 25, 30, 9.0);
	save(o, 30);
	save(o, 31);
	saver_run(o, 5);
	assert_int_equal(saver_state(o, 20), CKPT_VERIFIED);
	assert_true(tainted(o, 30) && tainted(o, 31));
}

/* It ran on through the upgrade: nobody asked for more than to be told. */
static void a_job_of_a_version_before_is_only_told(void **state)
{
	struct saver *o = *state;
	struct job *j[2];

	begun(o);
	j[0] = (struct job *)saver_job(o);
	j[1] = (struct job *)job_find(core_state(o->w.shadow), o->id);
	for (int i = 0; i < 2; i++) {
		words_own(&j[i]->spec);
		mo_str_set(&j[i]->spec.recipe.hang, NULL);
	}
	losses(o, 25, 60, NAN);
	assert_int_equal(events(o, "loss.nan"), 1);
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_int_equal(saver_job(o)->state, JOB_RUNNING);
	world_why_has(&o->w, o->id, "it was submitted to a version before");
}

#define T(f) cmocka_unit_test_setup_teardown(f, saver_setup, saver_teardown)

static void grads(struct saver *o, int64_t from, int64_t to, double value)
{
	for (int64_t i = from; i < to; i++) {
		struct sample *s = sample(o, i);

		s->loss = 2 + 0.01 * (double)(i % 5);
		s->grad_norm = value + 0.02 * (double)(i % 7);
	}
	saver_run(o, 1);
}

/* It is told and nothing follows; noise, one in a hundred iterations more, and an engine that says
 * that it skipped the step are not told. */
static void a_gradient_that_explodes_is_told(void **state)
{
	struct saver *o = *state;
	struct sample *s;

	saver_losses(o, "rollback", MO_NONE_F, MO_NONE);
	saver_run(o, 2);
	grads(o, 1, 40, 0.8);
	grads(o, 40, 41, 5);
	assert_int_equal(events(o, "grad.spike"), 0); /* six times: clipped */
	grads(o, 41, 60, 0.8);
	s = sample(o, 60);
	s->loss = 2;
	s->skipped = 1; /* one of the iterations of the line */
	s->grad_norm = INFINITY;
	saver_run(o, 1);
	assert_int_equal(events(o, "grad.spike"), 0);
	grads(o, 61, 62, 64);
	assert_int_equal(events(o, "grad.spike"), 1);
	assert_true(says(o, "grad.spike", "the gradient norm of iteration 61 is 64.1, where 0.8"));
	grads(o, 62, 63, 90);
	assert_int_equal(events(o, "grad.spike"), 1);
	grads(o, 63, 170, 0.8);
	grads(o, 170, 171, NAN);
	assert_int_equal(events(o, "grad.spike"), 2);
	assert_true(says(o, "grad.spike", "the gradient norm of iteration 170 is no number"));
	assert_int_equal(saver_job(o)->attempt, 1);
	assert_int_equal(events(o, "loss.nan") + events(o, "loss.spike"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_nan_is_an_event),
		T(nan_that_stays_goes_back),
		T(a_job_of_a_version_before_is_only_told),
		T(what_was_saved_at_the_last_good_loss_is_tainted),
		T(a_crash_in_between),
		T(the_same_place_ends_it),
		T(another_place_counts_anew),
		T(recipe_says_how_often_and_what),
		T(a_spike_that_comes_back_is_an_event),
		T(a_spike_that_stays),
		T(no_spikes),
		T(too_few_say_nothing),
		T(skipped_is_no_failure),
		T(no_loss_is_no_nan),
		T(only_news_is_judged),
		T(all_tainted_waits_for_a_person),
		T(what_a_scan_finds_is_tainted),
		T(what_was_saved_behind_a_backup_names_no_attempt),
		T(the_next_job_knows_it),
		T(keep_leaves_the_good_one),
		T(a_gradient_that_explodes_is_told),
	};

	return cmocka_run_group_tests_name("dcore/numbers", tests, NULL, NULL);
}
