/* See robust.h. */
#include "daemon/core/state/robust.h"

#include <math.h>

#include "lib/base/assert.h"
#include "lib/base/util.h"

static void swap(double *a, double *b)
{
	double v = *a;

	*a = *b;
	*b = v;
}

/* Hoare's selection: afterwards values[k] is what it would be if all were sorted, and none before
 * it is greater. The pivot is the middle of three, so that sorted ones are no worst case. */
static double select_nth(double *values, size_t n, size_t k)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		size_t i = low, j = high, mid = low + (high - low) / 2;

		if (values[mid] < values[low])
			swap(&values[mid], &values[low]);
		if (values[high] < values[low])
			swap(&values[high], &values[low]);
		if (values[high] < values[mid])
			swap(&values[high], &values[mid]);
		const double pivot = values[mid];
		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i > j)
				break;
			swap(&values[i++], &values[j]);
			if (j == 0)
				break;
			j--;
		}
		if (k <= j)
			high = j;
		else if (k >= i)
			low = i;
		else
			break;
	}
	return values[k];
}

double robust_median(double *values, size_t n)
{
	mo_assert(n > 0);
	double middle = select_nth(values, n, n / 2), below = values[0];

	if (n % 2)
		return middle;
	for (size_t i = 1; i < n / 2; i++)
		below = MO_MAX(below, values[i]);
	return (below + middle) / 2;
}

double robust_sigma(double *values, size_t n, double median)
{
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - median);
	return MAD_SIGMA * robust_median(values, n);
}
