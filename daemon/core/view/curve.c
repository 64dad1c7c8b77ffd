/* See curve.h. Samples stand by attempt and iteration (update/samples.c). A bucket has neighbours
 * of one attempt, and none of it ends beyond the iteration from which a later attempt went on
 * unless all of it does: what was trained in vain can be told from what counts. */
#include "daemon/core/view/curve.h"

#include <math.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"

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

static double value_of(const struct sample *s, int name)
{
	switch (name) {
	case CURVE_LOSS: return s->loss;
	case CURVE_GRAD_NORM: return s->grad_norm;
	case CURVE_STEP_MS: return s->step_ms;
	case CURVE_TOKENS: return s->tokens_per_s_per_gpu;
	default: return s->mfu;
	}
}

/* Its first sample among the newest attempts that are drawn. */
static size_t first_drawn(const struct job_progress *p)
{
	size_t at = p->n_samples, attempts = 0;

	for (; at > 0; at--) {
		if (at < p->n_samples && p->samples[at - 1].attempt == p->samples[at].attempt)
			continue;
		if (attempts++ == CURVE_ATTEMPTS_MAX)
			break;
	}
	return at;
}

static void find_attempts(const struct job *j, size_t first, struct curve_view *ret)
{
	const struct job_progress *p = &j->progress;
	int64_t end = INT64_MAX;

	for (size_t i = first; i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		struct curve_attempt *a =
			ret->n_attempts ? &ret->attempts[ret->n_attempts - 1] : NULL;

		if (!a || a->attempt != s->attempt) {
			a = MO_ADD(ret, attempts, &curve_attempt_desc);
			a->attempt = s->attempt;
			a->first = s->iteration;
		}
		a->last = s->iteration;
	}
	/* one that has no sample yet counts too: it goes on from there */
	if (ret->n_attempts && ret->attempts[ret->n_attempts - 1].attempt < j->attempt &&
	    j->run.resume != MO_NONE)
		end = MO_MAX(j->run.resume, 0);
	for (size_t i = ret->n_attempts; i-- > 0;) {
		struct curve_attempt *a = &ret->attempts[i];

		if (end >= a->first)
			a->counted = MO_MIN(a->last, end);
		end = MO_MIN(end, a->first - 1);
	}
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

static void fold(double *last, double *least, double *most, double v)
{
	if (v == MO_NONE_F)
		return;
	*last = v;
	if (isfinite(v) && (*least == MO_NONE_F || v < *least))
		*least = v;
	if (!isfinite(v) || (isfinite(*most) && (*most == MO_NONE_F || v > *most)))
		*most = v;
}

static void bucket(const struct sample *s, size_t n, struct curve_view *ret)
{
	mo_assert(n > 0 && s[0].attempt == s[n - 1].attempt);
	mo_ints_add(&ret->iteration, &ret->n_iteration, s[n - 1].iteration);
	mo_ints_add(&ret->count, &ret->n_count, (int64_t)n);
	ret->decimated |= n > 1;
	for (size_t k = 0; k < ret->n_series; k++) {
		struct curve_series *c = &ret->series[k];
		double last = MO_NONE_F, least = MO_NONE_F, most = MO_NONE_F;

		for (size_t i = 0; i < n; i++)
			fold(&last, &least, &most, value_of(&s[i], c->name));
		mo_reals_add(&c->last, &c->n_last, rounded(last));
		mo_reals_add(&c->least, &c->n_least, rounded(least));
		mo_reals_add(&c->most, &c->n_most, rounded(most));
	}
}

static void find_buckets(const struct job_progress *p, size_t from, size_t stride,
			 struct curve_view *ret)
{
	size_t a = 0;

	for (size_t i = from, n; i < p->n_samples; i += n) {
		const struct sample *s = &p->samples[i];

		while (ret->attempts[a].attempt < s->attempt)
			a++;
		if (ret->attempts[a].at == MO_NONE)
			ret->attempts[a].at = (int64_t)ret->n_iteration;
		for (n = 1; n < stride && i + n < p->n_samples; n++)
			if (s[n].attempt != s->attempt ||
			    s[n - 1].iteration == ret->attempts[a].counted)
				break;
		bucket(s, n, ret);
	}
}

static void add_series(struct curve_view *v, int name)
{
	struct curve_series *c = MO_ADD(v, series, &curve_series_desc);

	c->name = name;
}

/* What was asked for and is known. */
static void find_series(const struct job_progress *p, size_t from, const bool *names,
			struct curve_view *ret)
{
	for (int k = 0; k < _CURVE_N; k++) {
		bool known = false;

		for (size_t i = from; i < p->n_samples && names[k] && !known; i++)
			known = value_of(&p->samples[i], k) != MO_NONE_F;
		if (known)
			add_series(ret, k);
	}
}

static bool is_behind(const struct sample *s, const struct curve_question *q)
{
	return s->attempt > q->attempt || (s->attempt == q->attempt && s->iteration > q->iteration);
}

void curve_of(const struct job *j, const struct curve_question *q, struct curve_view *ret)
{
	const struct job_progress *p = &j->progress;
	size_t first = first_drawn(p), from = p->n_samples;

	mo_assert(q->points >= CURVE_POINTS_MIN && q->points <= CURVE_POINTS_MAX);
	while (from > first && is_behind(&p->samples[from - 1], q))
		from--;
	find_attempts(j, first, ret);
	find_series(p, from, q->names, ret);
	find_buckets(p, from,
		     MO_MAX((p->n_samples - from + (size_t)q->points - 1) / (size_t)q->points, 1),
		     ret);
	for (size_t k = 0; k < ret->n_series && !ret->decimated; k++)
		ret->series[k].n_least = ret->series[k].n_most = 0;
	if (p->n_samples)
		ret->next = mo_printf("%lld.%lld", (long long)p->samples[p->n_samples - 1].attempt,
				      (long long)p->samples[p->n_samples - 1].iteration);
	ret->earlier = (int64_t)first;
	ret->left_out = MO_MAX(p->left_out, 0);
}
