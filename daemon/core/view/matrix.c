/* See matrix.h. A rank is held against the other ranks of its pipeline stage, which do the same
 * work: its distance from their median in units of their spread, as straggler_judge.c does. */
#include "daemon/core/view/matrix.h"

#include <math.h>
#include <string.h>

#include "daemon/core/rules/rank_doing.h"
#include "daemon/core/state/activity.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/robust.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

#define SIGMA_MIN 0.02 /* of the median: readings are rounded */

const char *const matrix_metric_names[_MATRIX_N] = { "state",    "doing",     "iteration",
						     "step_ms",  "delay_pct", "wanted_pct",
						     "busy_pct", "mem_pct",   "power_w" };
static const char *const units[_MATRIX_N] = { NULL, NULL, NULL, "ms", "%", "%", "%", "%", "W" };
/* by enum rank_state and enum rank_doing */
static const char state_letters[] = "wrxl", doing_letters[] = "icltseCHG-?";

static_assert(sizeof(state_letters) == _RANK_STATE_N + 1 &&
		      sizeof(doing_letters) == _RANK_DOING_N + 1,
	      "a letter each");

static const struct mo_field matrix_letter_fields[] = {
	MO_D(matrix_letter, letter, MO_STR, "one character of letters"),
	MO_D(matrix_letter, name, MO_STR, "what it stands for"),
	MO_D(matrix_letter, ranks, MO_INT, "how many of these ranks have it"),
};
static const struct mo_desc matrix_letter_desc = MO_DESC(matrix_letter, matrix_letter_fields);
static const struct mo_field matrix_rank_fields[] = {
	MO_D(matrix_rank, rank, MO_INT, "number of the rank"),
	MO_D(matrix_rank, node, MO_STR, "its node"),
	MO_D(matrix_rank, gpu, MO_INT, "slot of its GPU"),
	MO_D_SUB(matrix_rank, coords, MO_OPT, &rank_coords_desc, "place in the parallel groups"),
	MO_D(matrix_rank, value, MO_REAL, "its value; null where that is a word"),
	MO_D(matrix_rank, median, MO_REAL, "of the ranks of its pipeline stage"),
	MO_D(matrix_rank, score, MO_REAL,
	     "how many of their standard deviations it is above; negative: below"),
	MO_D(matrix_rank, word, MO_STR, "its value where that is a word"),
};
static const struct mo_desc matrix_rank_desc = MO_DESC(matrix_rank, matrix_rank_fields);
static const struct mo_field matrix_view_fields[] = {
	MO_D_ENUM(matrix_view, metric, matrix_metric_names, "what the values are"),
	MO_D(matrix_view, unit, MO_STR, "unit of the values"),
	MO_D(matrix_view, attempt, MO_INT, "attempt that the ranks are of"),
	MO_D(matrix_view, iteration, MO_INT, "newest iteration of the job"),
	MO_D(matrix_view, ranks, MO_INT, "ranks of the job"),
	MO_D(matrix_view, first, MO_INT, "rank of the first value in this answer"),
	MO_D(matrix_view, next, MO_INT, "`after` of the question for the rest; null: it is all"),
	MO_D_SUB(matrix_view, sizes, MO_OPT, &rank_coords_desc,
		 "sizes of the parallel groups: of ranks that follow each other tp is counted "
		 "first, then cp, dp, pp; ep = (dp * cp size + cp) modulo ep size. null: ranks are "
		 "no places in them"),
	MO_D_LIST(matrix_view, values, MO_REALS,
		  "by rank, to a tenth; null: not known; nothing where they are letters",
		  .omit = true),
	MO_D(matrix_view, letters, MO_STR, "by rank, a character each", .omit = true),
	MO_D_VEC(matrix_view, legend, &matrix_letter_desc, "what letters stand for", .omit = true),
	MO_D_VEC(matrix_view, worst, &matrix_rank_desc,
		 "of these ranks the ten that differ most from their stage, or, of letters, that "
		 "have another one than most"),
};
const struct mo_desc matrix_view_desc = MO_DESC(matrix_view, matrix_view_fields);

static double activity_of(const struct state *s, const struct job *j, int kind, size_t rank,
			  int64_t now)
{
	const struct rank_acts *a = rank_acts_of(s, j, rank);

	return a ? act_now(a, kind, now) : MO_NONE_F;
}

static double value_of(const struct state *s, const struct job *j, int metric, size_t rank,
		       int64_t now)
{
	int64_t iteration;
	double ms, v;

	switch (metric) {
	case MATRIX_ITERATION:
	case MATRIX_STEP_MS:
		rank_progress_of(s, j, rank, &iteration, &ms);
		if (metric == MATRIX_ITERATION)
			return iteration == MO_NONE ? MO_NONE_F : (double)iteration;
		return ms;
	case MATRIX_DELAY:
		v = activity_of(s, j, ACT_DELAY, rank, now);
		return v == MO_NONE_F ? v : v - 100;
	case MATRIX_WANTED: return activity_of(s, j, ACT_WANTED, rank, now);
	case MATRIX_BUSY: return activity_of(s, j, ACT_BUSY, rank, now);
	case MATRIX_MEM: return activity_of(s, j, ACT_MEM, rank, now);
	default: return activity_of(s, j, ACT_POWER, rank, now);
	}
}

/* Index of its word; one that does not run any more does nothing. */
static size_t word_of(const struct state *s, const struct job *j, int metric, size_t rank,
		      int64_t now)
{
	int doing;

	if (metric == MATRIX_STATE)
		return (size_t)j->run.ranks[rank].state;
	doing = rank_doing_of(s, j, rank, now);
	return doing < 0 ? RANK_UNKNOWN : (size_t)doing;
}

static struct matrix_rank *add_worst(const struct job *j, size_t rank, struct matrix_view *v)
{
	const struct rank *k = &j->run.ranks[rank];
	struct matrix_rank *ret = MO_ADD(v, worst, &matrix_rank_desc);

	ret->rank = k->rank;
	ret->node = mo_strdup(k->node);
	ret->gpu = k->gpu;
	ret->coords = mo_desc_dup(&rank_coords_desc, k->coords);
	return ret;
}

struct odd {
	size_t rank;
	double value, median, score;
};
struct odds {
	struct odd items[MATRIX_WORST]; /* the oddest first */
	size_t n;
};

static void keep_odd(struct odds *o, const struct odd *k)
{
	size_t at = o->n;

	while (at > 0 && fabs(o->items[at - 1].score) < fabs(k->score))
		at--;
	if (at == MATRIX_WORST)
		return;
	o->n = MO_MIN(o->n + 1, MATRIX_WORST);
	memmove(&o->items[at + 1], &o->items[at], (o->n - at - 1) * sizeof(*k));
	o->items[at] = *k;
}

static int64_t stage_of(const struct job *j, size_t rank)
{
	return j->run.ranks[rank].coords ? j->run.ranks[rank].coords->pp : 0;
}

double matrix_sigma(double *values, size_t n, double median)
{
	return MO_MAX(robust_sigma(values, n, median), SIGMA_MIN * fabs(median));
}

/* Ranks from..to, one stage: held against their median. */
static void judge_stage(const double *values, size_t from, size_t to, double *scratch,
			struct odds *ret)
{
	double median, sigma;
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		if (isfinite(values[i]) && values[i] != MO_NONE_F)
			scratch[n++] = values[i];
	if (n == 0)
		return;
	median = robust_median(scratch, n);
	sigma = matrix_sigma(scratch, n, median);
	for (size_t i = from; i < to && sigma > 0; i++)
		if (isfinite(values[i]) && values[i] != MO_NONE_F && values[i] != median)
			keep_odd(ret, &(struct odd){ i, values[i], median,
						     (values[i] - median) / sigma });
}

static void judge(const struct job *j, size_t from, size_t to, const double *values,
		  struct matrix_view *ret)
{
	_cleanup_(mo_freep) double *scratch = mo_alloc_array(to - from + 1, sizeof(*scratch));
	struct odds odds = { .n = 0 };

	for (size_t at = from, end; at < to; at = end) {
		for (end = at + 1; end < to && stage_of(j, end) == stage_of(j, at);)
			end++;
		judge_stage(values - from, at, end, scratch, &odds);
	}
	for (size_t i = 0; i < odds.n; i++) {
		struct matrix_rank *w = add_worst(j, odds.items[i].rank, ret);

		w->value = odds.items[i].value;
		w->median = odds.items[i].median;
		w->score = round(odds.items[i].score * 10) / 10;
	}
}

static void add_values(const struct state *s, const struct job *j, size_t from, size_t to,
		       int64_t now, struct matrix_view *ret)
{
	for (size_t i = from; i < to; i++) {
		double v = value_of(s, j, ret->metric, i, now);

		mo_reals_add(&ret->values, &ret->n_values, v == MO_NONE_F ? v : round(v * 10) / 10);
	}
	judge(j, from, to, ret->values, ret);
}

/* A letter each, how many have which, and who has another one than most. */
static void add_words(const struct state *s, const struct job *j, size_t from, size_t to,
		      int64_t now, struct matrix_view *ret)
{
	bool state = ret->metric == MATRIX_STATE;
	const char *letters = state ? state_letters : doing_letters;
	const char *const *names = state ? rank_state_names : rank_doing_names;
	_cleanup_(mo_freep) unsigned char *words = mo_alloc(to - from + 1);
	int64_t count[_RANK_DOING_N] = { 0 };
	size_t most = 0;

	ret->letters = mo_alloc(to - from + 1);
	for (size_t i = from; i < to; i++) {
		words[i - from] = (unsigned char)word_of(s, j, ret->metric, i, now);
		ret->letters[i - from] = letters[words[i - from]];
		count[words[i - from]]++;
	}
	for (size_t k = 0; k < strlen(letters); k++) {
		struct matrix_letter *l = MO_ADD(ret, legend, &matrix_letter_desc);

		l->letter = mo_strndup(&letters[k], 1);
		l->name = mo_strdup(names[k]);
		l->ranks = count[k];
		if (count[k] > count[most])
			most = k;
	}
	for (size_t i = from; i < to && ret->n_worst < MATRIX_WORST; i++)
		if (words[i - from] != most)
			add_worst(j, i, ret)->word = mo_strdup(names[words[i - from]]);
}

/* Behind the last whole stage that fits; within the stage where none does. */
static size_t page_end(const struct job *j, size_t from, size_t limit)
{
	size_t n = j->run.n_ranks, end = MO_MIN(from + limit, n), at = end;

	while (at > from && at < n && stage_of(j, at) == stage_of(j, at - 1))
		at--;
	return at > from ? at : end;
}

void matrix_of(const struct state *s, const struct job *j, int metric, int64_t first, int64_t limit,
	       int64_t now, struct matrix_view *ret)
{
	const struct recipe_parallelism *p = &j->spec.recipe.parallelism;
	size_t n = j->run.n_ranks, from = MO_MIN((size_t)first, n),
	       to = page_end(j, from, (size_t)limit);

	mo_assert(first >= 0 && limit > 0 && metric >= 0 && metric < _MATRIX_N);
	ret->metric = metric;
	ret->unit = units[metric] ? mo_strdup(units[metric]) : NULL;
	ret->attempt = j->attempt;
	ret->iteration = j->progress.iteration;
	ret->ranks = (int64_t)n;
	ret->first = first;
	ret->next = to < n ? (int64_t)to - 1 : MO_NONE;
	if (n && j->run.ranks[0].coords) {
		ret->sizes = mo_desc_new(&rank_coords_desc);
		*ret->sizes = (struct rank_coords){ p->tp, p->pp, p->ep, p->cp, p->dp };
	}
	if (metric == MATRIX_STATE || metric == MATRIX_DOING)
		add_words(s, j, from, to, now, ret);
	else
		add_values(s, j, from, to, now, ret);
}
