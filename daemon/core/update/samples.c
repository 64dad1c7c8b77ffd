/* The samples of a job: one per (attempt, iteration), ascending, bounded. Called by
 * update_notes.c (writes) and the views (reads). */
#include "daemon/core/update/samples.h"

#include <math.h>

#include "daemon/core/update/data_order.h"
#include "daemon/core/update/numbers.h"
#include "daemon/core/update/pace.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

/* Above the limit every second one of the older half goes: recent iterations stay complete, old
 * ones get coarser. Samples own nothing. */
static void thin(struct job *j)
{
	size_t half = j->progress.n_samples / 2, retained = 0;

	for (size_t i = 0; i < j->progress.n_samples; i++)
		if (i >= half || i % 2 == 0)
			j->progress.samples[retained++] = j->progress.samples[i];
	j->progress.n_samples = retained;
	mo_assert(retained < MO_SAMPLES_MAX); /* there is room for the next */
}

static void derive(const struct job *j, struct sample *s, const struct sample *before)
{
	const struct recipe *r = &j->spec.recipe;

	mo_assert(!before || before < s);
	if (s->step_ms == MO_NONE_F && before && before->attempt == s->attempt &&
	    before->iteration < s->iteration && s->time > before->time)
		s->step_ms = (double)(s->time - before->time) / 1000.0 /
			     (double)(s->iteration - before->iteration);
	if (s->tokens == MO_NONE && r->global_tokens > 0)
		s->tokens = r->global_tokens;
	else if (s->tokens == MO_NONE && r->seq > 0 && r->global_batch > 0 &&
		 r->global_batch < INT64_MAX / r->seq)
		s->tokens = r->seq * r->global_batch;
	if (s->tokens_per_s_per_gpu == MO_NONE_F && s->tokens != MO_NONE && s->step_ms > 0 &&
	    isfinite(s->step_ms))
		s->tokens_per_s_per_gpu =
			(double)s->tokens * 1000.0 / s->step_ms / (double)job_gpus(j);
	/* beyond it: a time that is none, of a dispatch */
	if (s->mfu == MO_NONE_F && s->tflops_per_gpu != MO_NONE_F && j->spec.peak_tflops > 0 &&
	    s->tflops_per_gpu <= j->spec.peak_tflops)
		s->mfu = s->tflops_per_gpu / j->spec.peak_tflops;
}

static void newest(struct job *j, const struct sample *s)
{
	if (s->loss != MO_NONE_F)
		j->progress.shown.loss = s->loss;
	if (s->tokens_per_s_per_gpu != MO_NONE_F)
		j->progress.shown.tokens_per_s_per_gpu = s->tokens_per_s_per_gpu;
	if (s->tflops_per_gpu != MO_NONE_F)
		j->progress.shown.tflops_per_gpu = s->tflops_per_gpu;
	if (s->mfu != MO_NONE_F)
		j->progress.shown.mfu = s->mfu;
}

void samples_add(struct job *j, const struct sample *reported, int64_t attempt, int64_t time)
{
	struct sample *s;
	size_t at;

	if (reported->iteration < 0)
		return;
	for (at = j->progress.n_samples; at > 0; at--) {
		struct sample *old = &j->progress.samples[at - 1];

		if (old->attempt < attempt ||
		    (old->attempt == attempt && old->iteration < reported->iteration))
			break;
		if (j->progress.n_samples - at >= SAMPLES_LATE_MAX)
			return;
		if (old->attempt == attempt && old->iteration == reported->iteration) {
			sample_merge(old, reported);
			if (at == j->progress.n_samples)
				newest(j, old);
			numbers_sample(j, at - 1);
			pace_sample(j, at - 1);
			data_order_sample(j, at - 1);
			return;
		}
	}
	s = MO_ADD(&j->progress, samples, &sample_desc);
	for (size_t i = j->progress.n_samples - 1; i > at; i--)
		j->progress.samples[i] = j->progress.samples[i - 1];
	s = &j->progress.samples[at];
	*s = *reported;
	s->attempt = attempt;
	s->time = time;
	mo_assert(at == 0 || s[-1].attempt < attempt || s[-1].iteration < s->iteration);
	derive(j, s, at > 0 ? s - 1 : NULL);
	if (at == j->progress.n_samples - 1)
		newest(j, s);
	numbers_sample(j, at);
	pace_sample(j, at);
	data_order_sample(j, at);
	if (j->progress.n_samples > MO_SAMPLES_MAX)
		thin(j);
}
