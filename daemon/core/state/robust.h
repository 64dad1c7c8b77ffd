/* Middle and spread of numbers some of which are far off: neither a pause nor a fast one moves
 * them. Pure; used by what is learned of losses, step times and ranks. */
#pragma once
#include <stddef.h>

#define MAD_SIGMA 1.4826 /* of a normal distribution, from its median absolute deviation */

/* Changes their order; n > 0, none is NaN. In O(n). */
double robust_median(double *values, size_t n);
/* The deviation of a normal distribution that spreads as they do; overwrites them. */
double robust_sigma(double *values, size_t n, double median);
