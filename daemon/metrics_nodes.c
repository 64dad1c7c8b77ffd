/* See metrics_nodes.h. A node has series of its own only while something is wrong with it, and at
 * most so many have. */
#include "daemon/metrics_nodes.h"

#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/view/view.h"
#include "lib/wire/metric.h"

#define LISTED 1000 /* nodes, and checks, that are listed one by one */

/* INT64_MAX: none has ended */
static int64_t oldest_end(const struct state *s)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i]->ended_at != MO_NONE)
			oldest = MO_MIN(oldest, s->jobs[i]->ended_at);
	return oldest;
}

static void by_state(struct mo_buf *b, const struct metric *m, const char *const *names,
		     const int64_t *n, int n_names)
{
	metric_begin(b, m);
	for (int i = 0; i < n_names; i++)
		metric_add(b, m, (double)MO_MAX(n[i], 0), METRIC_LABELS("state", names[i]));
}

static void cluster(struct manager *m, struct mo_buf *b)
{
	static const struct metric nodes = { "moe_nodes", METRIC_GAUGE, "Nodes by state." },
				   jobs = { "moe_jobs", METRIC_GAUGE, "Jobs by state." };
	int64_t oldest = oldest_end(manager_state(m));
	struct cluster_view v;

	mo_desc_init(&cluster_view_desc, &v);
	cluster_view(manager_state(m), MO_VERSION, &v);
	by_state(b, &nodes, node_state_names,
		 (int64_t[]){ v.nodes.up, v.nodes.suspect, v.nodes.down, v.nodes.draining,
			      v.nodes.drained },
		 _NODE_STATE_N);
	by_state(b, &jobs, job_state_names, v.jobs, _JOB_STATE_N);
	metric_one(b, &(struct metric){ "moe_gpus", METRIC_GAUGE, "GPU slots of all nodes." },
		   (double)v.gpus.total);
	metric_one(b,
		   &(struct metric){ "moe_gpus_free", METRIC_GAUGE,
				     "GPU slots that a job could have now." },
		   (double)v.gpus.free);
	metric_one(b,
		   &(struct metric){ "moe_steps_waiting", METRIC_GAUGE,
				     "Steps that wait until a GPU is given back by the job "
				     "before." },
		   (double)core_steps_waiting(m->core));
	metric_one(b,
		   &(struct metric){ "moe_history_oldest_seconds", METRIC_GAUGE,
				     "Since the end of the job that ended first of those that "
				     "are kept." },
		   oldest == INT64_MAX ? MO_NONE_F
				       : (double)MO_MAX(manager_now(m) - oldest, 0) / 1e6);
	metric_one(b,
		   &(struct metric){ "moe_controller_epoch", METRIC_GAUGE,
				     "Number of this start of the controller on this state." },
		   (double)v.epoch);
	mo_desc_done(&cluster_view_desc, &v);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void heartbeats(struct manager *m, struct mo_buf *b)
{
	static const struct metric metric = { "moe_node_heartbeat_age_seconds", METRIC_SUMMARY,
					      "Time since a node was heard, over all nodes." };
	static const struct {
		const char *label;
		double share;
	} quantiles[] = { { "0.5", 0.5 }, { "0.99", 0.99 }, { "1", 1 } };
	const struct state *s = manager_state(m);
	_cleanup_(mo_freep) double *ages = mo_alloc_array(s->n_nodes + 1, sizeof(*ages));
	int64_t now = manager_now(m);
	size_t n = 0;

	metric_begin(b, &metric);
	for (size_t i = 0; i < s->n_nodes; i++) {
		int64_t heard = node_heard_at(s, s->nodes[i]);

		if (heard > 0)
			ages[n++] = (double)MO_MAX(now - heard, 0) / 1e6;
	}
	qsort(ages, n, sizeof(*ages), ascending);
	for (size_t q = 0; q < ELEMENTSOF(quantiles) && n; q++)
		metric_add(b, &metric, ages[(size_t)(quantiles[q].share * (double)(n - 1))],
			   METRIC_LABELS("quantile", quantiles[q].label));
}

static void not_up(struct manager *m, struct mo_buf *b)
{
	static const struct metric metric = { "moe_node_state", METRIC_GAUGE,
					      "1 for each node that is not up." };
	const struct state *s = manager_state(m);
	int64_t n = 0;

	metric_begin(b, &metric);
	for (size_t i = 0; i < s->n_nodes; i++) {
		int state = node_shown_state(s->nodes[i]);

		if (state != NODE_UP && n++ < LISTED)
			metric_add(b, &metric, 1,
				   METRIC_LABELS("node", s->nodes[i]->name, "state",
						 node_state_names[state]));
	}
	metric_one(b,
		   &(struct metric){ "moe_nodes_left_out", METRIC_GAUGE,
				     "Nodes that are not up and not listed, as there are too "
				     "many." },
		   (double)MO_MAX(n - LISTED, 0));
}

static void findings(struct manager *m, struct mo_buf *b)
{
	static const struct metric metric = { "moe_node_check_state", METRIC_GAUGE,
					      "Checks that are not OK: 1 warn, 2 crit, "
					      "3 unknown." };
	const struct state *s = manager_state(m);
	int64_t n = 0;

	metric_begin(b, &metric);
	for (size_t i = 0; i < s->n_nodes; i++)
		for (size_t k = 0; s->nodes[i]->health && k < s->nodes[i]->health->n_results; k++) {
			const struct check_result *r = &s->nodes[i]->health->results[k];

			if (finding_skipped(r) || n++ >= LISTED)
				continue;
			metric_add(b, &metric, r->state,
				   METRIC_LABELS("node", s->nodes[i]->name, "check", r->check,
						 "object", r->object));
		}
	metric_one(b,
		   &(struct metric){ "moe_node_checks_left_out", METRIC_GAUGE,
				     "Checks that are not OK and not listed, as there are too "
				     "many." },
		   (double)MO_MAX(n - LISTED, 0));
	metric_one(b,
		   &(struct metric){ "moe_nodes_cordoned", METRIC_GAUGE,
				     "Nodes drained because of a finding." },
		   (double)core_cordoned(m->core));
	metric_one(b,
		   &(struct metric){ "moe_health_changes_untold_total", METRIC_COUNTER,
				     "Changes of checks that made no event, as there were too "
				     "many." },
		   (double)core_health_muted(m->core));
}

void metrics_nodes(struct manager *m, struct mo_buf *b)
{
	cluster(m, b);
	heartbeats(m, b);
	not_up(m, b);
	findings(m, b);
}
