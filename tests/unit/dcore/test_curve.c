/* A run to be drawn: nothing is left out silently, attempts keep their borders, and what is newer
 * goes on where the answer before ended. */
#include "tests/unit/dcore/world.h"

#include <math.h>

#include "daemon/core/view/curve.h"

static struct sample *sample(struct job *j, int64_t attempt, int64_t iteration, double loss)
{
	struct sample *s = MO_ADD(&j->progress, samples, &sample_desc);

	s->attempt = attempt;
	s->iteration = iteration;
	s->loss = loss;
	s->step_ms = 40;
	return s;
}

static void samples(struct job *j, int64_t attempt, int64_t from, int64_t to)
{
	for (int64_t i = from; i <= to; i++)
		sample(j, attempt, i, (double)(i % 10));
	j->attempt = attempt;
}

static struct job *job(void)
{
	return mo_desc_new(&job_desc);
}

/* Samples of one attempt from there on; those after `blocks` stand alone, as the state has them. */
static size_t block_at(const struct job *j, size_t at, size_t blocks)
{
	const struct sample *s = j->progress.samples;
	size_t n = 1;

	while (n < BLOCK_SAMPLES && at + n < MO_MIN(blocks, j->progress.n_samples) &&
	       s[at + n].attempt == s[at].attempt)
		n++;
	return n;
}

static struct curve_view *ask_blocks(const struct job *j, int64_t points, int64_t attempt,
				     int64_t iteration, size_t blocks)
{
	struct curve_question q = { .points = points, .attempt = attempt, .iteration = iteration };
	struct curve_view *v = mo_desc_new(&curve_view_desc);
	const struct sample *s = j->progress.samples;
	struct curve c;
	size_t n;

	for (int k = 0; k < _CURVE_N; k++)
		q.names[k] = true;
	curve_start(&c, &q, v);
	for (size_t i = 0; i < j->progress.n_samples; i += n) {
		n = block_at(j, i, blocks);
		curve_seen(&c, s[i].attempt, s[i].iteration, s[i + n - 1].iteration, (int64_t)n);
	}
	curve_begin(&c, j);
	for (size_t i = 0; i < j->progress.n_samples; i += n) {
		struct sample_block b;

		n = block_at(j, i, blocks);
		sample_block_of(&s[i], n, &b);
		bool needed = curve_needs(&c, &b);

		for (size_t k = 0; k < (needed ? n : 1); k++) {
			if (needed)
				sample_block_of(&s[i + k], 1, &b);
			curve_add(&c, &b);
		}
	}
	curve_end(&c);
	return v;
}

static struct curve_view *ask(const struct job *j, int64_t points, int64_t attempt,
			      int64_t iteration)
{
	return ask_blocks(j, points, attempt, iteration, 0);
}

static int64_t sum(const struct curve_view *v)
{
	int64_t n = 0;

	for (size_t i = 0; i < v->n_count; i++)
		n += v->count[i];
	return n;
}

static void done(struct job *j, struct curve_view *v)
{
	mo_desc_free(&curve_view_desc, v);
	mo_desc_free(&job_desc, j);
}

static void a_short_run_is_as_it_was(void **state)
{
	struct job *j = job();
	struct curve_view *v;

	samples(j, 1, 1, 9);
	v = ask(j, 10, 0, -1);
	assert_false(v->decimated);
	assert_int_equal(v->n_iteration, 9);
	assert_int_equal(v->n_series, 2); /* the others are not known */
	assert_int_equal(v->series[0].n_last, 9);
	assert_int_equal(v->series[0].n_least, 0);
	assert_string_equal(v->next, "1.9");
	done(j, v);
}

static void a_long_run_is_decimated_and_says_so(void **state)
{
	struct job *j = job();
	struct curve_view *v;

	samples(j, 1, 1, 1000);
	v = ask(j, 10, 0, -1);
	assert_true(v->decimated);
	assert_int_equal(v->n_iteration, 10);
	assert_int_equal(sum(v), 1000);
	assert_int_equal(v->iteration[9], 1000);
	assert_float_equal(v->series[0].least[3], 0, 0);
	assert_float_equal(v->series[0].most[3], 9, 0);
	assert_float_equal(v->series[0].last[3], 0, 0);
	done(j, v);
}

static void a_loss_that_is_no_number_shows(void **state)
{
	struct job *j = job();
	struct curve_view *v;

	samples(j, 1, 1, 100);
	j->progress.samples[42].loss = NAN;
	j->progress.samples[55].loss = INFINITY;
	j->progress.samples[57].loss = MO_NONE_F;
	v = ask(j, 10, 0, -1);
	assert_true(isnan(v->series[0].most[4]));
	assert_float_equal(v->series[0].least[4], 0, 0);
	assert_true(isinf(v->series[0].most[5]));
	assert_float_equal(v->series[0].most[6], 9, 0);
	done(j, v);
}

static void what_was_in_vain_is_told_from_what_counts(void **state)
{
	struct job *j = job();
	struct curve_view *v;

	samples(j, 1, 1, 35);
	samples(j, 2, 21, 50);
	samples(j, 3, 5, 8); /* back beyond the beginning of the second */
	v = ask(j, 10, 0, -1);
	assert_int_equal(v->n_attempts, 3);
	assert_int_equal(v->attempts[0].counted, 4);
	assert_int_equal(v->attempts[1].counted, MO_NONE);
	assert_int_equal(v->attempts[2].counted, 8);
	assert_int_equal(v->attempts[0].at, 0);
	assert_int_equal(v->iteration[v->attempts[1].at - 1], 35);
	assert_int_equal(v->iteration[v->attempts[2].at - 1], 50);
	assert_int_equal(v->iteration[0], 4); /* no bucket has both */
	assert_int_equal(sum(v), 35 + 30 + 4);
	mo_desc_free(&curve_view_desc, v);
	/* one that has no iteration yet, and goes on from 6 */
	j->attempt = 4;
	j->run.resume = 6;
	v = ask(j, 10, 0, -1);
	assert_int_equal(v->attempts[2].counted, 6);
	done(j, v);
}

/* Of which only the ranges are read, but where a border goes through them. */
static void blocks_are_drawn_as_their_samples(void **state)
{
	struct job *j = job();
	struct curve_view *v, *all;

	samples(j, 1, 1, 1000);
	j->progress.samples[100].loss = NAN;
	samples(j, 2, 901, 1600);
	v = ask_blocks(j, 10, 0, -1, 1500);
	all = ask(j, 10, 0, -1);
	assert_int_equal(sum(v), 1700);
	assert_int_equal(v->attempts[0].counted, 900);
	assert_int_equal(v->attempts[1].first, 901);
	for (size_t i = 0; i < (size_t)v->attempts[1].at; i++)
		if (v->iteration[i] == 900)
			v->attempts[0].at = -1;
	assert_int_equal(v->attempts[0].at, -1); /* a bucket ends at the border */
	assert_true(isnan(v->series[0].most[0]));
	assert_float_equal(v->series[0].least[0], 0, 0);
	assert_string_equal(v->next, all->next);
	assert_int_equal(all->n_series, v->n_series);
	mo_desc_free(&curve_view_desc, all);
	mo_desc_free(&curve_view_desc, v);
	/* what is newer begins within a block */
	v = ask_blocks(j, 2000, 2, 1001, 1500);
	assert_int_equal(sum(v), 599);
	assert_false(v->decimated); /* blocks are too coarse for so many points */
	assert_int_equal(v->iteration[0], 1002);
	done(j, v);
}

static void what_is_newer_follows(void **state)
{
	struct job *j = job();
	struct curve_view *v;

	samples(j, 1, 1, 100);
	samples(j, 2, 91, 95);
	v = ask(j, 10, 1, 98);
	assert_int_equal(v->n_iteration, 7);
	assert_int_equal(v->iteration[0], 99);
	assert_int_equal(v->iteration[2], 91);
	assert_int_equal(v->n_attempts, 2); /* all borders, with every answer */
	assert_int_equal(v->attempts[1].at, 2);
	mo_desc_free(&curve_view_desc, v);
	v = ask(j, 10, 2, 95);
	assert_int_equal(v->n_iteration, 0);
	assert_int_equal(v->n_series, 0);
	assert_int_equal(v->attempts[1].at, MO_NONE);
	assert_string_equal(v->next, "2.95");
	done(j, v);
}

static void of_many_attempts_the_newest_are_drawn(void **state)
{
	struct job *j = job();
	struct curve_view *v;

	for (int64_t a = 1; a <= CURVE_ATTEMPTS_MAX + 7; a++)
		samples(j, a, 3, 5);
	v = ask(j, 10, 0, -1);
	assert_int_equal(v->n_attempts, CURVE_ATTEMPTS_MAX);
	assert_int_equal(v->attempts[0].attempt, 8);
	assert_int_equal(v->earlier, 7 * 3);
	assert_true(v->n_iteration <= 10 + 2 * CURVE_ATTEMPTS_MAX);
	done(j, v);
}

static void without_samples_there_is_nothing(void **state)
{
	struct job *j = job();
	struct curve_view *v = ask(j, 10, 0, -1);

	assert_int_equal(v->n_iteration + v->n_attempts + v->n_series, 0);
	assert_null(v->next);
	done(j, v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_run_is_as_it_was),
		cmocka_unit_test(a_long_run_is_decimated_and_says_so),
		cmocka_unit_test(a_loss_that_is_no_number_shows),
		cmocka_unit_test(what_was_in_vain_is_told_from_what_counts),
		cmocka_unit_test(blocks_are_drawn_as_their_samples),
		cmocka_unit_test(what_is_newer_follows),
		cmocka_unit_test(of_many_attempts_the_newest_are_drawn),
		cmocka_unit_test(without_samples_there_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
