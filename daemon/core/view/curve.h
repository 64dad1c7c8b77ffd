/* How a run went, to be drawn: its samples of all attempts in buckets of neighbours, so that any
 * run fits in a picture and no value is left out silently. Pure; called by the shell
 * (daemon/api_job_drawn.c). */
#pragma once
#include "daemon/core/state/state.h"

enum curve_name { CURVE_LOSS, CURVE_GRAD_NORM, CURVE_STEP_MS, CURVE_TOKENS, CURVE_MFU, _CURVE_N };
extern const char *const curve_names[_CURVE_N];
#define CURVE_POINTS_MIN 10
#define CURVE_POINTS_MAX 2000
#define CURVE_ATTEMPTS_MAX 256 /* the newest are drawn */

struct curve_attempt {
	int64_t attempt, first, last, counted, at;
};
struct curve_series {
	int name; /* enum curve_name */
	double *last, *least, *most;
	size_t n_last, n_least, n_most;
};
struct curve_view {
	bool decimated;
	struct curve_attempt *attempts;
	size_t n_attempts;
	int64_t *iteration, *count;
	size_t n_iteration, n_count;
	struct curve_series *series;
	size_t n_series;
	char *next;
	int64_t earlier, left_out;
};
extern const struct mo_desc curve_view_desc;

struct curve_question {
	int64_t points;             /* how many buckets there shall be, about */
	bool names[_CURVE_N];       /* the series that are asked for */
	int64_t attempt, iteration; /* samples behind this place; 0, -1: all */
};
/* ret: initialised. There are at most points buckets, and two for each attempt more. */
void curve_of(const struct job *j, const struct curve_question *q, struct curve_view *ret);
