/* Times that training programs took, from recorded logs; where each is from: recorded.c. */
#pragma once
#include <stddef.h>

struct recorded {
	const char *log;
	double seconds[40];
	size_t n;
};
/* Steps behind the first, in the order in which the log has them. */
extern const struct recorded recorded_steps[];
extern const size_t n_recorded_steps;
/* First steps, with what is compiled in them; saves; starts and loads. */
extern const struct recorded recorded_firsts, recorded_saves, recorded_starts;
/* How many times the median of its log a step took. body: without the few that stand out. */
extern const double *recorded_body, *recorded_outliers;
extern size_t n_recorded_body, n_recorded_outliers;
void recorded_init(void);
