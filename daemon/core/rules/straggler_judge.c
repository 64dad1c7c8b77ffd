/* See straggler_judge.h. */
#include "daemon/core/rules/straggler_judge.h"

#include <stdlib.h>

#include "daemon/core/state/robust.h"
#include "lib/base/desc.h"

#define DEVIATIONS 8.0
#define MANY 3 /* more than one of so many: it is none of them */
/* of the median: readings are rounded, and few of them may agree by chance */
#define SIGMA_MIN 0.02

/* Known ones first, by stage. */
static int by_stage(const void *a, const void *b)
{
	const struct rank_value *x = a, *y = b;

	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Of the stage that begins there: how many are known. */
static size_t stage_end(const struct rank_value *r, size_t n, size_t at)
{
	size_t end = at;

	while (end < n && r[end].stage == r[at].stage)
		end++;
	return end;
}

static double middle(const struct rank_value *r, size_t n, double *values, double *ret_sigma)
{
	double median;

	for (size_t i = 0; i < n; i++)
		values[i] = r[i].value;
	median = robust_median(values, n);
	*ret_sigma = MO_MAX(robust_sigma(values, n, median), SIGMA_MIN * median);
	return median;
}

/* Of ranks of one stage. */
static struct standout among(const struct rank_value *r, size_t n, bool above, double share,
			     double *values)
{
	struct standout s = { .rank = MO_NONE, .n_peers = n };
	double most = 0;

	s.median = middle(r, n, values, &s.sigma);
	for (size_t i = 0; i < n; i++) {
		double over = (r[i].value - s.median) * (above ? 1 : -1);

		if (over <= 0 || over < share * s.median || over < DEVIATIONS * s.sigma)
			continue;
		s.n_odd++;
		if (over <= most)
			continue;
		most = over;
		s.rank = r[i].rank;
		s.value = r[i].value;
	}
	if (s.n_odd * MANY > n)
		s.rank = MO_NONE;
	return s;
}

static double by(const struct standout *s)
{
	double off = s->value / s->median;

	return off > 1 ? off : 1 / off;
}

/* of most jobs no rank tells: nothing is sorted then */
static size_t known(struct rank_value *readings, size_t n)
{
	size_t n_read = 0;

	for (size_t i = 0; i < n; i++)
		if (readings[i].value != MO_NONE_F)
			readings[n_read++] = readings[i];
	qsort(readings, n_read, sizeof(*readings), by_stage);
	return n_read;
}

struct standout standout_of(struct rank_value *readings, size_t n, bool above, double share)
{
	_cleanup_(mo_freep) double *values = mo_alloc_array(n + 1, sizeof(*values));
	struct standout worst = { .rank = MO_NONE };
	size_t n_odd = 0, n_known = 0, n_read = known(readings, n);

	for (size_t at = 0, end; at < n_read; at = end) {
		struct standout here;

		end = stage_end(readings, n_read, at);
		if (end - at < PEERS_MIN)
			continue;
		here = among(&readings[at], end - at, above, share, values);
		n_odd += here.n_odd;
		n_known += end - at;
		if (here.rank != MO_NONE && (worst.rank == MO_NONE || by(&here) > by(&worst)))
			worst = here;
	}
	worst.n_odd = n_odd;
	worst.n_known = n_known;
	return worst;
}

double standout_times(struct rank_value *readings, size_t n, int64_t rank)
{
	_cleanup_(mo_freep) double *values = mo_alloc_array(n + 1, sizeof(*values));
	size_t n_read = known(readings, n);
	double sigma;

	for (size_t at = 0, end; at < n_read; at = end) {
		end = stage_end(readings, n_read, at);
		for (size_t i = at; i < end; i++)
			if (readings[i].rank == rank && end - at >= PEERS_MIN) {
				double median = middle(&readings[at], end - at, values, &sigma);

				return median > 0 ? readings[i].value / median : 0;
			}
	}
	return 0;
}

static int past_by_stage(const void *a, const void *b)
{
	const struct rank_past *x = a, *y = b;

	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

struct standout standout_of_past(struct rank_past *r, size_t n, double share, double good)
{
	struct standout s = { .rank = MO_NONE, .n_known = n };
	double most = 0;

	if (n)
		qsort(r, n, sizeof(*r), past_by_stage);
	for (size_t at = 0, end; at < n; at = end) {
		for (end = at; end < n && r[end].stage == r[at].stage;)
			end++;
		for (size_t i = at; i < end; i++) {
			double over = r[i].now - r[i].usual,
			       sigma = MO_MAX(r[i].sigma, SIGMA_MIN * r[i].usual);

			s.n_odd += r[i].now >= good * r[i].usual;
			if (end - at >= PEERS_MIN || over < share * r[i].usual ||
			    over < DEVIATIONS * sigma || over / r[i].usual <= most)
				continue;
			most = over / r[i].usual;
			s.rank = r[i].rank;
			s.value = r[i].now;
			s.median = r[i].usual;
			s.sigma = sigma;
			s.n_peers = end - at;
		}
	}
	/* one of two is no more than the other was; of one alone it may be the job */
	if (n < 2 || s.n_odd > MO_MAX(n / MANY, (size_t)1))
		s.rank = MO_NONE;
	return s;
}
