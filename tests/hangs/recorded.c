/* See recorded.h. The logs: megatron-01 is Megatron-LM's own on two H200 of 2026-11-21; the others
 * are quoted in public: torchtitan pull requests 3393, 1287 and 950, MaxText's documentation of its
 * metrics and of elastic training, epfLLM/Megatron-LM issue 11, ROCm cvs (saves of Orbax), NeMo
 * issue 13140, Primus' test of its line. Longest known: a start that builds its data set for 781 s
 * (Megatron-LM issue 792), an Orbax restore of 24 minutes (marin issue 8538). */
#include "tests/hangs/recorded.h"

#include <stdlib.h>

#include "lib/base/util.h"

const struct recorded recorded_steps[] = {
	{ "megatron-01-ok-h200x2",
	  { 0.2320, 0.4657, 0.1716, 0.1845, 1.1879, 0.1961, 0.1917, 0.1836, 0.1655, 0.1717,
	    0.1819, 0.1691, 0.1782, 0.1792, 0.1786, 0.1958, 0.1564, 0.1595, 0.1694, 1.2618,
	    0.2018, 0.1955, 0.2008, 0.2033, 0.1968, 0.1685, 0.1542, 0.1493 },
	  28 },
	{ "megatron-04-notimestamp-epfllm11", { 86.5452, 87.8716, 89.4748, 89.0752 }, 4 },
	{ "torchtitan-01-steps-pr3393", { 1.118, 1.121, 1.125, 1.122, 1.122, 1.123 }, 6 },
	{ "torchtitan-02-asyncckpt-pr1287", { 1.3847, 1.3920, 1.3920 }, 3 },
	{ "maxtext-01-steps-docs", { 0.319, 5.658, 5.402, 5.669, 5.668, 5.667 }, 6 },
	{ "maxtext-05-elastic-docs", { 0.159, 0.166 }, 2 },
};
const size_t n_recorded_steps = ELEMENTSOF(recorded_steps);
const struct recorded recorded_firsts = { "megatron-01, maxtext-01, primus-03",
					  { 6.6161, 44.923, 19.392 },
					  3 };
const struct recorded recorded_saves = { "megatron-01, maxtext-04, nemo-01",
					 { 10.5386, 0.7675, 0.7822, 11.09, 3.89, 1.016 },
					 6 };
const struct recorded recorded_starts = { "megatron-01, Megatron-LM issue 792, marin issue 8538",
					  { 14.58, 781, 1440 },
					  3 };

/* above this times the median it stands out */
#define OUTLIER 2.0
static double body[64], outliers[16];
const double *recorded_body = body, *recorded_outliers = outliers;
size_t n_recorded_body, n_recorded_outliers;

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void recorded_init(void)
{
	for (size_t i = 0; i < n_recorded_steps; i++) {
		const struct recorded *r = &recorded_steps[i];
		double sorted[ELEMENTSOF(r->seconds)] = { 0 };

		for (size_t k = 0; k < r->n; k++)
			sorted[k] = r->seconds[k];
		qsort(sorted, r->n, sizeof(*sorted), by_size);
		for (size_t k = 0; k < r->n; k++) {
			double ratio = r->seconds[k] / sorted[r->n / 2];

			if (ratio > OUTLIER)
				outliers[n_recorded_outliers++] = ratio;
			else if (ratio > 0.5) /* less: when it was sent, not when it was done */
				body[n_recorded_body++] = ratio;
		}
	}
}
