/* See lemon.h. Called by the views of nodes and by placement; a pass over all jobs' incidents each
 * time, which are few. */
#include "daemon/core/state/lemon.h"

#include <math.h>
#include <stdlib.h>

static const struct mo_field node_failure_fields[] = {
	MO_D_ID(node_failure, job, job_prefix, "id of the job that failed"),
	MO_D(node_failure, attempt, MO_INT, "which attempt of it"),
	MO_D(node_failure, time, MO_TIME, "when"),
	MO_D(node_failure, class, MO_STR,
	     "class of the failure; straggler: a rank there made the job slow"),
	MO_D(node_failure, cause, MO_STR, "its cause"),
	MO_D(node_failure, weight, MO_REAL, "what it adds to the score before it ages"),
};
const struct mo_desc node_failure_desc = MO_DESC(node_failure, node_failure_fields);

/* A program that dies in the same way wherever it runs says nothing about a node. */
static bool elsewhere_too(const struct job *j, const struct incident *inc)
{
	for (size_t i = 0; i < j->n_incidents; i++)
		if (j->incidents[i].node && !mo_streq(j->incidents[i].node, inc->node) &&
		    mo_streq(j->incidents[i].cause, inc->cause) &&
		    mo_streq(j->incidents[i].class, inc->class))
			return true;
	return false;
}

static double weight_of(const struct job *j, const struct incident *inc)
{
	static const char *const half[] = { "transient", "suspect", "hang" };

	if (mo_streq(inc->class, "node_fault"))
		return 1;
	return mo_enum_parse(half, ELEMENTSOF(half), inc->class) >= 0 && !elsewhere_too(j, inc)
		       ? 0.5
		       : 0;
}

static double aged(double weight, int64_t time, int64_t now)
{
	return weight * exp2(-(double)MO_MAX(now - time, 0) / (double)LEMON_HALF_US);
}

/* Of those that one attempt had there, the first counts. */
static double straggler_weight(const struct job *j, size_t at)
{
	const struct found_straggler *f = &j->straggler.found[at];

	for (size_t i = 0; i < at; i++)
		if (j->straggler.found[i].attempt == f->attempt &&
		    mo_streq(j->straggler.found[i].node, f->node))
			return 0;
	return STRAGGLER_WEIGHT;
}

void lemon_scores(const struct state *s, int64_t now, double *ret)
{
	size_t first = s->n_jobs > LEMON_JOBS ? s->n_jobs - LEMON_JOBS : 0;

	for (size_t i = 0; i < s->n_nodes; i++)
		ret[i] = 0;
	for (size_t i = first; i < s->n_jobs; i++)
		for (size_t k = 0; k < s->jobs[i]->n_incidents; k++) {
			const struct incident *inc = &s->jobs[i]->incidents[k];
			size_t at;

			if (node_at(s, inc->node, &at))
				ret[at] += aged(weight_of(s->jobs[i], inc), inc->time, now);
		}
	for (size_t i = first; i < s->n_jobs; i++)
		for (size_t k = 0; k < s->jobs[i]->straggler.n_found; k++) {
			const struct found_straggler *f = &s->jobs[i]->straggler.found[k];
			size_t at;

			if (node_at(s, f->node, &at))
				ret[at] += aged(straggler_weight(s->jobs[i], k), f->at, now);
		}
}

int64_t lemon_points(double score)
{
	return (int64_t)(score + 0.25);
}

static int by_time(const void *a, const void *b)
{
	const struct node_failure *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static double stragglers_of(const struct state *s, const struct node *n, int64_t now,
			    struct node_failure **ret, size_t *n_ret)
{
	double score = 0;

	for (size_t i = 0; i < s->n_jobs; i++)
		for (size_t k = 0; k < s->jobs[i]->straggler.n_found; k++) {
			const struct found_straggler *g = &s->jobs[i]->straggler.found[k];
			struct node_failure *f;

			if (!mo_streq(g->node, n->name))
				continue;
			f = mo_vec_add(&node_failure_desc, (void **)ret, n_ret);
			*f = (struct node_failure){
				s->jobs[i]->id,
				g->attempt,
				g->at,
				mo_strdup("straggler"),
				mo_printf("rank %lld made it lose %.0f %% of its time",
					  (long long)g->rank, g->lost_pct),
				straggler_weight(s->jobs[i], k)
			};
			score += aged(f->weight, f->time, now);
		}
	return score;
}

double lemon_of(const struct state *s, const struct node *n, int64_t now, struct node_failure **ret,
		size_t *n_ret)
{
	double score = 0;

	for (size_t i = 0; i < s->n_jobs; i++)
		for (size_t k = 0; k < s->jobs[i]->n_incidents; k++) {
			const struct incident *inc = &s->jobs[i]->incidents[k];
			struct node_failure *f;

			if (!mo_streq(inc->node, n->name))
				continue;
			f = mo_vec_add(&node_failure_desc, (void **)ret, n_ret);
			*f = (struct node_failure){ s->jobs[i]->id,
						    inc->attempt,
						    inc->time,
						    mo_strdup(inc->class),
						    mo_strdup(inc->cause),
						    weight_of(s->jobs[i], inc) };
			score += aged(f->weight, f->time, now);
		}
	score += stragglers_of(s, n, now, ret, n_ret);
	if (*n_ret)
		qsort(*ret, *n_ret, sizeof(**ret), by_time);
	while (*n_ret > LEMON_SHOWN)
		mo_vec_remove(&node_failure_desc, *ret, n_ret, 0);
	return score;
}
