/* Which nodes fail more often than others: a score from the failures that are recorded in the
 * jobs that moed still knows. It is shown, and of nodes that are as good it
 * decides which one is taken first (rules/place.c).
 *   score = sum over failures that began on the node of weight x 2^(-age / 7 days)
 *   weight 1 the node was lost (node_fault), 0.5 a rank there died first, or its supervisor
 *   (transient, suspect, hang); 0 user errors, and what the same job suffered in the same way on
 *   another node too: that is the job's; 1 a rank there made a job slow, once an attempt */
#pragma once
#include "daemon/core/state/state.h"

#define LEMON_HALF_US (7 * 86400 * 1000000LL)
#define LEMON_SHOWN 20
#define LEMON_JOBS 4096 /* the newest, whose failures are looked through */
#define STRAGGLER_WEIGHT 1.0

struct node_failure {
	int64_t job, attempt, time;
	char *class, *cause;
	double weight;
};
extern const struct mo_desc node_failure_desc;

/* ret: one for each of state.nodes, of the newest LEMON_JOBS. */
void lemon_scores(const struct state *s, int64_t now, double *ret);
/* Whole points of a score, as placement compares them: two failures of half a point each, some time
 * ago, are still a point. */
int64_t lemon_points(double score);
/* The failures that began on this node, the newest LEMON_SHOWN, oldest first; appended. Returns
 * its score. */
double lemon_of(const struct state *s, const struct node *n, int64_t now, struct node_failure **ret,
		size_t *n_ret);
