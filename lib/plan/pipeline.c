/* Closed forms (see pipeline.h; idle times: idle.c). Sources: Narayanan et al. 2021 (1F1B,
 * interleaved), Qi et al. 2023 (ZB1P), Qi et al. 2024 (ZBV, V-half, V-min), DeepSeek-V3
 * (DualPipe); agree with Primus' simulator wherever that does not get stuck. */
#include "lib/plan/pipeline.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/model/layout.h"
#include "lib/plan/idle.h"

double plan_bubble(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches)
{
	double idle = pipeline_idle(schedule, pp, vpp, micro_batches, 1, 1, 1);

	mo_assert(idle >= 0 && micro_batches > 0);
	return idle / (3 * (double)micro_batches + idle);
}

bool pipeline_is_v(const char *schedule)
{
	return mo_streq(schedule, "zbv") || mo_streq(schedule, "v-half") ||
	       mo_streq(schedule, "v-min");
}

bool pipeline_splits(const char *schedule)
{
	return pipeline_is_v(schedule) || mo_streq(schedule, "zb1p") ||
	       mo_streq(schedule, "dualpipe");
}

int64_t pipeline_chunks(const char *schedule, int64_t vpp)
{
	mo_assert(vpp >= 0);
	if (pipeline_is_v(schedule))
		return 2;
	return mo_streq(schedule, "interleaved") || !schedule || mo_streq(schedule, "1f1b")
		       ? MO_MAX(vpp, 1)
		       : 1;
}

int pipeline_check(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches,
		   int64_t layers, struct mo_error *err)
{
	long long m = micro_batches, p = pp, chunks = pipeline_chunks(schedule, vpp);

	mo_assert(pp > 0 && micro_batches > 0 && layers > 0);
	if (mo_streq(schedule, "dualpipe") && (pp % 2 || m % 2 || m < 2 * pp))
		return mo_error_set(err, -EINVAL,
				    "parallelism.schedule: dualpipe needs an even pp and an even "
				    "number of micro-batches of at least 2 pp; pp %lld has %lld: "
				    "use pp %lld with %lld of them",
				    p, m, p + p % 2, (long long)MO_MAX(m + m % 2, 2 * (p + p % 2)));
	if (pipeline_is_v(schedule) && pp * chunks > layers)
		return mo_error_set(err, -EINVAL,
				    "parallelism.schedule: %s gives each of %lld stages two "
				    "chunks, and the model has %lld layers: use pp %lld or less",
				    schedule, p, (long long)layers,
				    (long long)MO_MAX(layers / 2, 1));
	return 0;
}

double pipeline_in_flight(const char *schedule, int64_t pp, int64_t vpp, int64_t micro_batches,
			  int64_t stage)
{
	double m = (double)micro_batches, p = (double)pp,
	       v = (double)pipeline_chunks(schedule, vpp), i = (double)stage;

	mo_assert(pp > 0 && stage >= 0 && stage < pp);
	if (mo_streq(schedule, "zb1p") || mo_streq(schedule, "zbv"))
		return MO_MIN(m, p);
	if (mo_streq(schedule, "v-half"))
		return MO_MIN(m, floor(p / 2) + 1);
	if (mo_streq(schedule, "v-min"))
		return MO_MIN(m, floor((p + 4) / 3));
	if (mo_streq(schedule, "dualpipe"))
		return MO_MIN(m, p + 1);
	if (v > 1) /* the warm-up's chunks and one more */
		return MO_MIN(m * v, 2 * (p - i - 1) + (v - 1) * p + 1) / v;
	return MO_MIN(m, p - i);
}

void pipeline_layers(int64_t total, int64_t pp, const int64_t *layers, int64_t stage,
		     int64_t *ret_first, int64_t *ret_last)
{
	int64_t each = total / pp, more = total % pp, first = each * stage + MO_MIN(stage, more),
		n = each + (stage < more);

	mo_assert(pp > 0 && stage >= 0 && stage < pp);
	if (layers) {
		first = 0;
		for (int64_t i = 0; i < stage; i++)
			first += layers[i];
		n = layers[stage];
	}
	*ret_first = first;
	*ret_last = first + n;
	mo_assert(0 <= *ret_first && *ret_first <= *ret_last && *ret_last <= total);
}

int pipeline_layout(const char *text, int64_t pp, int64_t vpp, int64_t layers, int64_t *ret,
		    struct mo_error *err)
{
	_cleanup_(layout_done) struct layout l = { 0 };
	_cleanup_(mo_freep) char *why = NULL;

	mo_assert(text && pp > 0 && vpp > 0);
	if (!layout_parse(text, &l, &why))
		return mo_error_set(err, -EINVAL, "features.pipeline_layout: %s", why);
	if ((int64_t)l.n_stages != pp * vpp)
		return mo_error_set(err, -EINVAL,
				    "features.pipeline_layout: %zu stages for pp %lld x vpp %lld: "
				    "write %lld stages, or set vpp to %lld",
				    l.n_stages, (long long)pp, (long long)vpp,
				    (long long)(pp * vpp),
				    (long long)MO_MAX((int64_t)l.n_stages / pp, 1));
	if (l.decoders != layers)
		return mo_error_set(err, -EINVAL,
				    "features.pipeline_layout: %lld layers (t) for a model of "
				    "%lld: add or take %lld",
				    (long long)l.decoders, (long long)layers,
				    (long long)MO_MAX(l.decoders - layers, layers - l.decoders));
	memset(ret, 0, (size_t)pp * sizeof(*ret));
	for (size_t i = 0; i < l.n_stages; i++)
		for (const char *s = l.stages[i]; *s; s++)
			ret[i % (size_t)pp] += *s == 't';
	return 0;
}

void pipeline_layout_chunks(const char *text, int64_t n, int64_t *ret)
{
	_cleanup_(layout_done) struct layout l = { 0 };
	_cleanup_(mo_freep) char *why = NULL;

	mo_assert(n > 0);
	memset(ret, 0, (size_t)n * sizeof(*ret));
	if (!layout_parse(text, &l, &why))
		return;
	for (size_t i = 0; i < MO_MIN(l.n_stages, (size_t)n); i++)
		for (const char *s = l.stages[i]; *s; s++)
			ret[i] += *s == 't';
}
