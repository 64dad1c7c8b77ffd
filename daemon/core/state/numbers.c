/* See numbers.h. */
#include "daemon/core/state/numbers.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/core/state/job.h"

#define WINDOW 64      /* good losses that the next one is held against */
#define LEAST 20       /* fewer say nothing: the first ones fall steeply, and so behind a resume */
#define LOOKED_AT 512  /* samples, until they are found */
#define DEVIATIONS 8.0 /* noise does not get there */
#define BEYOND 2.0     /* nor twice as far off as any of these: some losses have two levels */
#define MAD_SIGMA 1.4826 /* of a normal distribution, from its median absolute deviation */
#define SMALL 0.05       /* below it a multiple says nothing */

const char *const number_kind_names[_NUMBER_KIND_N] = { "none", "good", "nan", "spike" };

static const struct mo_field numbers_fields[] = {
	MO_D(numbers, attempt, MO_INT, "number of the attempt whose losses were judged last"),
	MO_D(numbers, judged, MO_INT, "newest iteration of it that was; MO_NONE: none"),
	MO_D(numbers, good, MO_INT, "newest iteration of it with a good loss, or where it began"),
	MO_D(numbers, trusted, MO_BOOL, "a loss was said, so that one that is missing is NaN"),
	MO_D_ENUM(numbers, kind, number_kind_names, "what the last loss was"),
	MO_D(numbers, begin, MO_INT, "first iteration of the newest bad losses in a row"),
	MO_D(numbers, since, MO_INT, "first iteration of the last of them that are of one kind"),
	MO_D(numbers, row, MO_INT, "how many these are"),
	MO_D(numbers, loss, MO_REAL, "the first of these"),
	MO_D(numbers, usual, MO_REAL, "median before them; MO_NONE_F: not asked for"),
	MO_D(numbers, episodes, MO_INT, "how often the loss went bad and that was told"),
	MO_D(numbers, told, MO_INT, "iteration of the last time in the attempt; MO_NONE: none"),
	MO_D_ENUM(numbers, told_kind, number_kind_names, "what the loss was then"),
	MO_D(numbers, grads, MO_INT,
	     "how often the gradient norm was far too high and that was told"),
	MO_D(numbers, grad_at, MO_INT, "iteration of the last time in the attempt; MO_NONE: none"),
	MO_D(numbers, grad, MO_REAL, "what it was then"),
	MO_D(numbers, grad_usual, MO_REAL, "median before it; MO_NONE_F: it is no number"),
	MO_D(numbers, place, MO_INT, "iteration that the job went back from last; MO_NONE: none"),
	MO_D(numbers, rollbacks, MO_INT, "how often it did from there"),
};
const struct mo_desc numbers_desc = MO_DESC(numbers, numbers_fields);

/* Megatron prints 0 as the loss of a line whose iterations were all skipped: it is none. How many
 * of these were NaN stands beside it. */
enum number_kind number_of_sample(const struct sample *s)
{
	bool none = s->loss == MO_NONE_F || s->loss == 0;

	if (none && s->nan != MO_NONE && s->nan > 0)
		return NUMBER_NAN;
	if (s->loss == MO_NONE_F || (none && s->skipped != MO_NONE && s->skipped > 0))
		return NUMBER_NONE;
	return isfinite(s->loss) ? NUMBER_GOOD : NUMBER_NAN;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double loss_of(const struct sample *s)
{
	return number_of_sample(s) == NUMBER_GOOD ? s->loss : MO_NONE_F;
}

static double grad_of(const struct sample *s)
{
	return isfinite(s->grad_norm) ? s->grad_norm : MO_NONE_F;
}

/* Values of the attempt before that sample and below iteration `end`. Above all of the window, so
 * that what lies in it costs a comparison and no sorting. */
static bool spikes(const struct job *j, size_t at, double (*value_of)(const struct sample *),
		   int64_t end, double factor, double *ret_usual)
{
	const struct sample *s = &j->progress.samples[at];
	double value = value_of(s), window[WINDOW], off[WINDOW], usual, over, top;
	size_t n = 0;

	*ret_usual = MO_NONE_F;
	for (size_t i = at, seen = 0; i > 0 && n < WINDOW && seen < LOOKED_AT; seen++) {
		const struct sample *b = &j->progress.samples[--i];
		double before = value_of(b);

		if (b->attempt != s->attempt)
			break;
		if (b->iteration >= end || before == MO_NONE_F)
			continue;
		if (before >= value)
			return false;
		window[n++] = before;
	}
	if (n < LEAST)
		return false;
	*ret_usual = usual = median(window, n);
	top = window[n - 1]; /* they are sorted now */
	for (size_t i = 0; i < n; i++)
		off[i] = fabs(window[i] - usual);
	over = value - usual;
	return over > BEYOND * (top - usual) && over > DEVIATIONS * MAD_SIGMA * median(off, n) &&
	       over > (factor - 1) * MO_MAX(fabs(usual), SMALL);
}

bool numbers_spike(const struct job *j, size_t at, double *ret_usual)
{
	double factor = j->spec.recipe.loss_factor;

	return spikes(j, at, loss_of, numbers_bad(j) ? j->progress.numbers->begin : INT64_MAX,
		      factor == MO_NONE_F ? NUMBERS_FACTOR : factor, ret_usual);
}

bool numbers_grad_spike(const struct job *j, size_t at, double *ret_usual)
{
	const struct sample *s = &j->progress.samples[at];

	*ret_usual = MO_NONE_F;
	if (s->grad_norm == MO_NONE_F || (s->skipped != MO_NONE && s->skipped > 0))
		return false;
	return !isfinite(s->grad_norm) ||
	       spikes(j, at, grad_of, INT64_MAX, NUMBERS_GRAD_FACTOR, ret_usual);
}

bool numbers_bad(const struct job *j)
{
	const struct numbers *n = j->progress.numbers;

	return n && (n->kind == NUMBER_NAN || n->kind == NUMBER_SPIKE);
}

/* The step of the last good loss may be the one that broke the weights: what was saved behind it
 * is no better than what followed. */
bool numbers_taint(const struct job *j, int64_t iteration)
{
	const struct numbers *n = j->progress.numbers;

	return numbers_bad(j) && n->trusted && n->attempt == j->attempt && iteration >= n->good;
}

bool numbers_goes_back(const struct job *j)
{
	return mo_streq(j->spec.recipe.loss_action, "rollback");
}

/* Who submitted it could not know that this ends an attempt; recovery.hang came with it. */
bool numbers_only_told(const struct job *j)
{
	return !j->spec.recipe.hang;
}

bool numbers_fault(const struct job *j)
{
	const struct numbers *n = j->progress.numbers;

	if (numbers_only_told(j) || !numbers_bad(j) || !n->trusted || n->attempt != j->attempt ||
	    j->run.n_places == 0)
		return false;
	return n->kind == NUMBER_NAN ? n->row >= NUMBERS_NAN_STAYS
				     : numbers_goes_back(j) && n->row >= NUMBERS_SPIKE_STAYS;
}

char *numbers_text(const struct job *j)
{
	const struct numbers *n = j->progress.numbers;

	if (n->kind == NUMBER_SPIKE)
		return mo_printf("the loss is too high since iteration %lld: %g, where %g was "
				 "usual",
				 (long long)n->since, n->loss, n->usual);
	return mo_printf("the loss is no number since iteration %lld", (long long)n->since);
}
