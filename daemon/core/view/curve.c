/* See curve.h. A bucket has neighbours of one attempt, and none of it ends beyond the iteration
 * from which a later attempt went on unless all of it does: what was trained in vain can be told
 * from what counts. */
#include "daemon/core/view/curve.h"

#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"

#define COARSE 4 /* so many times the bucket that was asked for is fine enough */

const char *const curve_names[_CURVE_N] = { "loss", "grad_norm", "step_ms", "tokens_per_s_per_gpu",
					    "mfu" };

static const struct mo_field curve_attempt_fields[] = {
	MO_D(curve_attempt, attempt, MO_INT, "number of the attempt"),
	MO_D(curve_attempt, first, MO_INT, "first iteration of it that a sample is kept of"),
	MO_D(curve_attempt, last, MO_INT, "last one"),
	MO_D(curve_attempt, counted, MO_INT,
	     "last one that no later attempt ran again; null: none, all of it was in vain"),
	MO_D(curve_attempt, at, MO_INT,
	     "place of its first bucket in this answer; null: it has none here"),
};
static const struct mo_desc curve_attempt_desc = MO_DESC(curve_attempt, curve_attempt_fields);
static const struct mo_field curve_series_fields[] = {
	MO_D_ENUM(curve_series, name, curve_names, "of which value"),
	MO_D_LIST(curve_series, last, MO_REALS,
		  "of each bucket the newest known value, to seven digits"),
	MO_DN(curve_series, least, "min", MO_REALS,
	      "of a decimated curve the least of each bucket that is a finite number",
	      .count_offset = offsetof(struct curve_series, n_least), .omit = true),
	MO_DN(curve_series, most, "max", MO_REALS,
	      "the greatest; where one was no finite number, that one",
	      .count_offset = offsetof(struct curve_series, n_most), .omit = true),
};
static const struct mo_desc curve_series_desc = MO_DESC(curve_series, curve_series_fields);
static const struct mo_field curve_view_fields[] = {
	MO_D(curve_view, decimated, MO_BOOL, "a bucket has more than one sample"),
	MO_D_VEC(curve_view, attempts, &curve_attempt_desc, "attempts, oldest first"),
	MO_D_LIST(curve_view, iteration, MO_INTS, "last iteration of each bucket"),
	MO_D_LIST(curve_view, count, MO_INTS, "how many samples each bucket stands for"),
	MO_D_VEC(curve_view, series, &curve_series_desc, "the values that were asked for"),
	MO_D(curve_view, next, MO_STR,
	     "`after` of a question for what is newer than this; null: there is no sample"),
	MO_D(curve_view, earlier, MO_INT,
	     "samples of attempts before those shown, of which there are at most 256"),
	MO_D(curve_view, left_out, MO_INT,
	     "iterations of which no sample is kept: they came too fast for long"),
};
const struct mo_desc curve_view_desc = MO_DESC(curve_view, curve_view_fields);

void curve_start(struct curve *c, const struct curve_question *q, struct curve_view *view)
{
	mo_assert(q->points >= CURVE_POINTS_MIN && q->points <= CURVE_POINTS_MAX);
	*c = (struct curve){ .question = *q, .view = view };
}

static bool is_behind(const struct curve *c, int64_t attempt, int64_t iteration)
{
	const struct curve_question *q = &c->question;

	return attempt > q->attempt || (attempt == q->attempt && iteration > q->iteration);
}

void curve_seen(struct curve *c, int64_t attempt, int64_t first, int64_t last, int64_t n)
{
	struct curve_view *v = c->view;
	struct curve_attempt *a = v->n_attempts ? &v->attempts[v->n_attempts - 1] : NULL;

	mo_assert(!a || a->attempt < attempt || (a->attempt == attempt && a->last < first));
	if (!a || a->attempt != attempt) {
		a = MO_ADD(v, attempts, &curve_attempt_desc);
		a->attempt = attempt;
		a->first = first;
		a->n = a->behind = 0;
	}
	a->last = last;
	a->n += n;
	a->behind += is_behind(c, attempt, last) ? n : 0;
}

/* The newest are drawn. */
static void leave_out_oldest(struct curve_view *v)
{
	size_t n = v->n_attempts > CURVE_ATTEMPTS_MAX ? v->n_attempts - CURVE_ATTEMPTS_MAX : 0;

	v->earlier = 0;
	for (size_t i = 0; i < n; i++)
		v->earlier += v->attempts[i].n;
	if (!n)
		return;
	memmove(v->attempts, v->attempts + n, CURVE_ATTEMPTS_MAX * sizeof(*v->attempts));
	v->n_attempts = CURVE_ATTEMPTS_MAX;
}

void curve_begin(struct curve *c, const struct job *j)
{
	struct curve_view *v = c->view;
	int64_t end = INT64_MAX, behind = 0;

	leave_out_oldest(v);
	/* one that has no sample yet counts too: it goes on from there */
	if (v->n_attempts && v->attempts[v->n_attempts - 1].attempt < j->attempt &&
	    j->run.resume != MO_NONE)
		end = MO_MAX(j->run.resume, 0);
	for (size_t i = v->n_attempts; i-- > 0;) {
		struct curve_attempt *a = &v->attempts[i];

		if (end >= a->first)
			a->counted = MO_MIN(a->last, end);
		end = MO_MIN(end, a->first - 1);
		behind += a->behind;
	}
	c->stride = MO_MAX((behind + c->question.points - 1) / c->question.points, 1);
	for (int k = 0; k < _CURVE_N; k++) {
		struct curve_series *s = MO_ADD(v, series, &curve_series_desc);

		s->name = k;
	}
	v->left_out = MO_MAX(j->progress.left_out, 0);
	if (v->n_attempts)
		v->next = mo_printf("%lld.%lld", (long long)v->attempts[v->n_attempts - 1].attempt,
				    (long long)v->attempts[v->n_attempts - 1].last);
}

/* NULL: too old to be drawn. */
static struct curve_attempt *attempt_of(struct curve *c, int64_t attempt)
{
	struct curve_view *v = c->view;

	while (c->attempt + 1 < v->n_attempts && v->attempts[c->attempt].attempt < attempt)
		c->attempt++;
	return v->n_attempts && v->attempts[c->attempt].attempt == attempt
		       ? &v->attempts[c->attempt]
		       : NULL;
}

bool curve_needs(struct curve *c, const struct sample_block *b)
{
	const struct curve_attempt *a = attempt_of(c, b->attempt);

	if (!a || !is_behind(c, b->attempt, b->last))
		return false;
	return b->n > COARSE * c->stride || !is_behind(c, b->attempt, b->first) ||
	       (a->counted >= b->first && a->counted < b->last);
}

/* A picture shows no more than seven digits, and they are written ten times as fast as all. */
static double rounded(double v)
{
	double size = fabs(v);

	if (!(size > 1e-99 && size < 1e99)) /* nor NaN; MO_NONE_F neither */
		return v;
	double scale = pow(10, 6 - floor(log10(size)));
	return round(v * scale) / scale;
}

/* The bucket is full. */
static void close_bucket(struct curve *c)
{
	struct curve_view *v = c->view;

	if (!c->bucket.n)
		return;
	mo_ints_add(&v->iteration, &v->n_iteration, c->bucket.last);
	mo_ints_add(&v->count, &v->n_count, c->bucket.n);
	v->decimated |= c->bucket.n > 1;
	for (int k = 0; k < _CURVE_N; k++) {
		const struct sample_range *r = &c->bucket.ranges[k];
		struct curve_series *s = &v->series[k];

		mo_reals_add(&s->last, &s->n_last, rounded(r->last));
		mo_reals_add(&s->least, &s->n_least, rounded(r->least));
		mo_reals_add(&s->most, &s->n_most, rounded(r->most));
		c->known[k] |= r->last != MO_NONE_F;
	}
	c->bucket.n = 0;
}

void curve_add(struct curve *c, const struct sample_block *b)
{
	struct curve_attempt *a = attempt_of(c, b->attempt);

	if (!a || !is_behind(c, b->attempt, b->last))
		return;
	if (c->bucket.n && c->bucket.attempt != b->attempt)
		close_bucket(c);
	if (a->at == MO_NONE)
		a->at = (int64_t)c->view->n_iteration;
	if (!c->bucket.n) {
		c->bucket = *b;
	} else {
		c->bucket.n += b->n;
		c->bucket.last = b->last;
		for (int k = 0; k < _CURVE_N; k++)
			sample_range_join(&c->bucket.ranges[k], &b->ranges[k]);
	}
	if (c->bucket.n >= c->stride || b->last == a->counted)
		close_bucket(c);
}

void curve_end(struct curve *c)
{
	struct curve_view *v = c->view;

	close_bucket(c);
	/* what was asked for and is known */
	for (size_t k = v->n_series; k-- > 0;)
		if (!c->question.names[k] || !c->known[k])
			mo_vec_remove(&curve_series_desc, v->series, &v->n_series, k);
	for (size_t k = 0; k < v->n_series && !v->decimated; k++)
		v->series[k].n_least = v->series[k].n_most = 0;
}
