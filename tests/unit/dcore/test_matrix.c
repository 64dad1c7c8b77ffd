/* One value of every rank: by rank, in pages, and who stands out of his pipeline stage. */
#include "tests/unit/dcore/world.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/state/robust.h"
#include "daemon/core/view/matrix.h"

#define RANKS 64

/* tp 2 cp 1 dp 8 pp 4: sixteen ranks a stage, each stage with a time of its own. */
static struct job *job(void)
{
	struct job *j = mo_desc_new(&job_desc);
	struct recipe_parallelism *p = &j->spec.recipe.parallelism;

	p->tp = 2;
	p->cp = 1;
	p->ep = 4;
	p->dp = 8;
	p->pp = 4;
	j->attempt = 3;
	for (int64_t i = 0; i < RANKS; i++) {
		struct rank *k = MO_ADD(&j->run, ranks, &rank_desc);

		k->rank = i;
		k->node = mo_printf("n%lld", (long long)i / 8);
		k->gpu = i % 8;
		k->state = RANK_RUNNING;
		k->coords = mo_desc_new(&rank_coords_desc);
		*k->coords = rank_coords_of(i, p->tp, p->cp, p->ep, p->dp, p->pp);
		k->iteration = 7;
		k->step_ms = 100 * (double)(k->coords->pp + 1) + (double)(i % 3);
	}
	return j;
}

static struct matrix_view *ask(const struct job *j, int metric, int64_t first, int64_t limit)
{
	struct matrix_view *v = mo_desc_new(&matrix_view_desc);
	struct state s;

	mo_desc_init(&state_desc, &s);
	matrix_of(&s, j, metric, first, limit, 0, v);
	mo_desc_done(&state_desc, &s);
	return v;
}

static void done(struct job *j, struct matrix_view *v)
{
	mo_desc_free(&matrix_view_desc, v);
	mo_desc_free(&job_desc, j);
}

static void who_stands_out_of_his_stage_is_named(void **state)
{
	struct job *j = job();
	struct matrix_view *v;

	/* slow for its stage, and yet faster than every rank of the next one */
	j->run.ranks[5].step_ms = 150;
	j->run.ranks[40].step_ms = 290.06;
	v = ask(j, MATRIX_STEP_MS, 0, MATRIX_RANKS_MAX);
	assert_int_equal(v->ranks, RANKS);
	assert_int_equal(v->n_values, RANKS);
	assert_int_equal(v->next, MO_NONE);
	assert_int_equal(v->sizes->pp, 4);
	assert_string_equal(v->unit, "ms");
	assert_int_equal(v->n_worst, MATRIX_WORST);
	assert_int_equal(v->worst[0].rank, 5);
	assert_string_equal(v->worst[0].node, "n0");
	assert_int_equal(v->worst[0].gpu, 5);
	assert_int_equal(v->worst[0].coords->dp, 2);
	assert_float_equal(v->worst[0].median, 101, 0);
	assert_true(v->worst[0].score > 20);
	assert_int_equal(v->worst[1].rank, 40);
	assert_true(v->worst[1].score < -1);
	assert_float_equal(v->values[40], 290.1, 0);
	done(j, v);
}

static void what_is_not_known_is_unknown(void **state)
{
	struct job *j = job();
	struct matrix_view *v;

	for (size_t i = 1; i < RANKS; i++)
		j->run.ranks[i].step_ms = MO_NONE_F;
	v = ask(j, MATRIX_STEP_MS, 0, MATRIX_RANKS_MAX);
	assert_true(v->values[1] == MO_NONE_F);
	assert_int_equal(v->n_worst, 0);
	mo_desc_free(&matrix_view_desc, v);
	v = ask(j, MATRIX_POWER, 0, MATRIX_RANKS_MAX);
	assert_true(v->values[0] == MO_NONE_F);
	done(j, v);
}

static void states_are_letters_with_a_legend(void **state)
{
	struct job *j = job();
	struct matrix_view *v;

	j->run.ranks[9].state = RANK_EXITED;
	j->run.ranks[63].state = RANK_LOST;
	v = ask(j, MATRIX_STATE, 0, MATRIX_RANKS_MAX);
	assert_int_equal(strlen(v->letters), RANKS);
	assert_int_equal(v->letters[0], 'r');
	assert_int_equal(v->letters[9], 'x');
	assert_int_equal(v->letters[63], 'l');
	assert_int_equal(v->n_values, 0);
	assert_int_equal(v->legend[1].ranks, RANKS - 2);
	assert_string_equal(v->legend[1].letter, "r");
	assert_string_equal(v->legend[1].name, "running");
	assert_int_equal(v->n_worst, 2);
	assert_int_equal(v->worst[1].rank, 63);
	assert_string_equal(v->worst[1].word, "lost");
	mo_desc_free(&matrix_view_desc, v);
	v = ask(j, MATRIX_DOING, 0, MATRIX_RANKS_MAX); /* of nodes that nobody knows */
	assert_int_equal(v->letters[0], '-');
	assert_int_equal(v->letters[9], '?');
	done(j, v);
}

static void pages_follow_each_other(void **state)
{
	struct job *j = job();
	int64_t seen = 0;

	for (int64_t first = 0; first >= 0;) {
		struct matrix_view *v = ask(j, MATRIX_STEP_MS, first, 25);

		assert_int_equal(v->first, first);
		assert_int_equal(v->n_values, 16); /* a whole stage, of which 25 hold no two */
		assert_int_equal(v->worst[0].coords->pp, first / 16);
		seen += (int64_t)v->n_values;
		first = v->next == MO_NONE ? -1 : v->next + 1;
		mo_desc_free(&matrix_view_desc, v);
	}
	assert_int_equal(seen, RANKS);
	struct matrix_view *v = ask(j, MATRIX_ITERATION, 0, 10); /* not even one fits */
	assert_int_equal(v->n_values, 10);
	assert_int_equal(v->next, 9);
	mo_desc_free(&matrix_view_desc, v);
	v = ask(j, MATRIX_STATE, 1000, 25);
	assert_string_equal(v->letters, "");
	done(j, v);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The middle is found without sorting: as sorting finds it, whatever the numbers. */
static void the_median_is_the_middle(void **state)
{
	unsigned seed = 7;

	for (size_t n = 1; n < 200; n++)
		for (int kind = 0; kind < 4; kind++) {
			double a[200], b[200];

			for (size_t i = 0; i < n; i++) {
				seed = seed * 1103515245 + 12345;
				a[i] = b[i] = kind == 0   ? (double)i
					      : kind == 1 ? (double)(n - i)
					      : kind == 2 ? (double)(seed >> 16 & 3)
							  : (double)(seed >> 8);
			}
			qsort(b, n, sizeof(*b), by_value);
			double middle = n % 2 ? b[n / 2] : (b[n / 2 - 1] + b[n / 2]) / 2;

			assert_true(robust_median(a, n) == middle);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_stands_out_of_his_stage_is_named),
		cmocka_unit_test(what_is_not_known_is_unknown),
		cmocka_unit_test(states_are_letters_with_a_legend),
		cmocka_unit_test(pages_follow_each_other),
		cmocka_unit_test(the_median_is_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
