/* How a run went, to be drawn: its samples of all attempts in buckets of neighbours, so that any
 * run fits in a picture and no value is left out silently. Pure; called by the shell
 * (daemon/api_job_drawn.c), which goes over the run twice, in files and in memory, by attempt and
 * iteration: curve_seen() of each part, curve_begin(), curve_add() of each part, curve_end(). A
 * part is a sample, or a block of them of which only the ranges are read. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/sample_block.h"

extern const char *const curve_names[_CURVE_N];
#define CURVE_POINTS_MIN 10
#define CURVE_POINTS_MAX 2000
#define CURVE_ATTEMPTS_MAX 256 /* the newest are drawn */

struct curve_attempt {
	int64_t attempt, first, last, counted, at;
	int64_t n, behind; /* samples; of them those that are asked for */
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
/* There are at most points buckets, and two for each attempt more. */
struct curve {
	struct curve_question question;
	struct curve_view *view;
	int64_t stride;             /* samples of a bucket */
	size_t attempt;             /* place of that of the newest part */
	struct sample_block bucket; /* the open one; n 0: none is */
	bool known[_CURVE_N];
};
/* view: initialised; it is the caller's, and stays where it is. */
void curve_start(struct curve *c, const struct curve_question *q, struct curve_view *view);
void curve_seen(struct curve *c, int64_t attempt, int64_t first, int64_t last, int64_t n);
void curve_begin(struct curve *c, const struct job *j);
/* A border goes through the block, or it is too coarse: its samples are to be added instead. */
bool curve_needs(struct curve *c, const struct sample_block *b);
void curve_add(struct curve *c, const struct sample_block *b);
void curve_end(struct curve *c);
