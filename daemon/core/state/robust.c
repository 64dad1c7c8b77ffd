/* See robust.h. */
#include "daemon/core/state/robust.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/assert.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double robust_median(double *values, size_t n)
{
	mo_assert(n > 0);
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double robust_sigma(double *values, size_t n, double median)
{
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - median);
	return MAD_SIGMA * robust_median(values, n);
}
