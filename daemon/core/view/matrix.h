/* One value of every rank of a job, as a column in the order of ranks, to be drawn along the axes
 * of its parallelism; and the ten ranks that stand out. Pure; called by the shell
 * (daemon/api_job_drawn.c). */
#pragma once
#include "daemon/core/state/state.h"

enum matrix_metric {
	MATRIX_STATE,
	MATRIX_DOING,
	MATRIX_ITERATION,
	MATRIX_STEP_MS,
	/* of processes and GPUs (state/activity.h) */
	MATRIX_DELAY,
	MATRIX_WANTED,
	MATRIX_BUSY,
	MATRIX_MEM,
	MATRIX_POWER,
	_MATRIX_N
};
extern const char *const matrix_metric_names[_MATRIX_N];
/* of one answer: 2 to 3 ms, so that of 100,000 ranks none keeps the controller's loop */
#define MATRIX_RANKS_MAX 8192
#define MATRIX_WORST 10

struct matrix_letter {
	char *letter, *name;
	int64_t ranks;
};
struct matrix_rank {
	int64_t rank;
	char *node;
	int64_t gpu;
	struct rank_coords *coords;
	double value, median, score;
	char *word;
};
struct matrix_view {
	int metric; /* enum matrix_metric */
	char *unit;
	int64_t attempt, iteration, ranks, first, next;
	struct rank_coords *sizes;
	double *values;
	size_t n_values;
	char *letters;
	struct matrix_letter *legend;
	size_t n_legend;
	struct matrix_rank *worst;
	size_t n_worst;
};
extern const struct mo_desc matrix_view_desc;

/* The spread of values of one stage around their median, which a distance is held against;
 * overwrites them. */
double matrix_sigma(double *values, size_t n, double median);
/* Ranks from `first` on, at most `limit`: whole pipeline stages where they fit. Legend and worst
 * are of these ranks. ret: initialised. */
void matrix_of(const struct state *s, const struct job *j, int metric, int64_t first, int64_t limit,
	       int64_t now, struct matrix_view *ret);
