/* GET /metrics: Prometheus text. Per-job figures only for jobs that are not over, so the number of series stays bounded by what runs. */
#include <math.h>
#include "daemon/api.h"

const double timing_limits[TIMING_BUCKETS] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5 };

void timing_add(struct timing *t, int64_t us)
{
	double s = (double)us / 1e6;
	size_t i = 0;

	while (i < TIMING_BUCKETS && s > timing_limits[i])
		i++;
	t->bucket[i]++;
	t->n++;
	t->sum_s += s;
}

static void family(struct mo_buf *b, const char *name, const char *type, const char *help)
{
	mo_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void histogram(struct mo_buf *b, const char *name, const char *help, const struct timing *t)
{
	int64_t sum = 0;

	family(b, name, "histogram", help);
	for (size_t i = 0; i < TIMING_BUCKETS; i++) {
		sum += t->bucket[i];
		mo_buf_printf(b, "%s_bucket{le=\"%g\"} %lld\n", name, timing_limits[i], (long long)sum);
	}
	mo_buf_printf(b, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.6f\n%s_count %lld\n", name, (long long)t->n, name, t->sum_s, name, (long long)t->n);
}

static void cluster(struct manager *m, struct mo_buf *b)
{
	struct cluster_view v;

	mo_desc_init(&cluster_view_desc, &v);
	cluster_view(manager_state(m), MO_VERSION, &v);
	family(b, "moe_nodes", "gauge", "Nodes by state.");
	mo_buf_printf(b, "moe_nodes{state=\"up\"} %lld\nmoe_nodes{state=\"suspect\"} %lld\nmoe_nodes{state=\"down\"} %lld\nmoe_nodes{state=\"draining\"} %lld\nmoe_nodes{state=\"drained\"} %lld\n",
		      (long long)v.nodes.up, (long long)v.nodes.suspect, (long long)v.nodes.down, (long long)v.nodes.draining, (long long)v.nodes.drained);
	family(b, "moe_gpus", "gauge", "GPU slots.");
	mo_buf_printf(b, "moe_gpus{kind=\"total\"} %lld\nmoe_gpus{kind=\"free\"} %lld\n", (long long)v.gpus.total, (long long)v.gpus.free);
	family(b, "moe_jobs", "gauge", "Jobs by state.");
	for (int i = 0; i < _JOB_STATE_N; i++)
		mo_buf_printf(b, "moe_jobs{state=\"%s\"} %lld\n", job_state_names[i], (long long)MO_MAX(v.jobs[i], 0));
	family(b, "moe_controller_epoch", "counter", "Starts of the controller on this state.");
	mo_buf_printf(b, "moe_controller_epoch %lld\n", (long long)v.epoch);
	mo_desc_done(&cluster_view_desc, &v);
}

static double step_ms_of(const struct job *j)
{
	return j->n_samples ? j->samples[j->n_samples - 1].step_ms : MO_NONE_F;
}
static double iteration_of(const struct job *j) { return j->iteration == MO_NONE ? MO_NONE_F : (double)j->iteration; }
static double restarts_of(const struct job *j) { return (double)j->restarts; }
static double loss_of(const struct job *j) { return j->loss; }
static double tokens_of(const struct job *j) { return j->tokens_per_s_per_gpu; }
static double tflops_of(const struct job *j) { return j->tflops_per_gpu; }
static double mfu_of(const struct job *j) { return j->mfu; }

static void number(struct mo_buf *b, double v)
{
	if (isnan(v))
		mo_buf_str(b, "NaN\n");
	else if (isinf(v))
		mo_buf_str(b, v > 0 ? "+Inf\n" : "-Inf\n");
	else
		mo_buf_printf(b, "%.10g\n", v);
}

static void jobs(struct manager *m, struct mo_buf *b)
{
	static const struct { const char *name, *type, *help; double (*get)(const struct job *j); } columns[] = {
		{ "moe_job_iteration", "gauge", "Newest iteration.", iteration_of }, { "moe_job_loss", "gauge", "Newest loss.", loss_of },
		{ "moe_job_step_milliseconds", "gauge", "Time of the newest iteration.", step_ms_of }, { "moe_job_restarts", "counter", "Attempts after a failure.", restarts_of },
		{ "moe_job_tokens_per_second_per_gpu", "gauge", "Throughput.", tokens_of }, { "moe_job_tflops_per_gpu", "gauge", "Throughput.", tflops_of },
		{ "moe_job_mfu", "gauge", "Model FLOPs utilization, a fraction.", mfu_of },
	};
	const struct state *s = manager_state(m);

	for (size_t c = 0; c < ELEMENTSOF(columns); c++) {
		family(b, columns[c].name, columns[c].type, columns[c].help);
		for (size_t i = 0; i < s->n_jobs; i++) {
			const struct job *j = &s->jobs[i];
			double v = columns[c].get(j);
			if (job_state_final(j->state) || v == MO_NONE_F)
				continue;
			/* names match [A-Za-z0-9._-]: nothing to escape */
			mo_buf_printf(b, "%s{job=\"j-%lld\",name=\"%s\"} ", columns[c].name, (long long)j->id, j->spec.recipe.name);
			number(b, v);
		}
	}
}

static void nodes(struct manager *m, struct mo_buf *b)
{
	const struct state *s = manager_state(m);
	int64_t now = manager_now(m);

	family(b, "moe_node_heartbeat_age_seconds", "gauge", "Time since the node was heard.");
	for (size_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].heard_at > 0)
			mo_buf_printf(b, "moe_node_heartbeat_age_seconds{node=\"%s\"} %.3f\n", s->nodes[i].name, (double)MO_MAX(now - s->nodes[i].heard_at, 0) / 1e6);
}

static void controller(struct manager *m, struct mo_buf *b)
{
	struct http_stats h;

	http_server_stats(m->http, &h);
	histogram(b, "moe_turn_seconds", "Turns of the loop, sync included.", &m->turn_time);
	histogram(b, "moe_store_sync_seconds", "Synced transactions.", &m->sync_time);
	family(b, "moe_store_records_total", "counter", "Records stored since the start.");
	mo_buf_printf(b, "moe_store_records_total %lld\n", (long long)m->n_records);
	family(b, "moe_store_full", "gauge", "1 while the state disk is full and new jobs are refused.");
	mo_buf_printf(b, "moe_store_full %d\n", m->store_full);
	family(b, "moe_http_requests_total", "counter", "Answers by class of status.");
	for (int i = 1; i <= 5; i++)
		mo_buf_printf(b, "moe_http_requests_total{class=\"%dxx\"} %lld\n", i, (long long)h.by_class[i]);
	family(b, "moe_http_connections", "gauge", "Open connections; held requests and streams among them.");
	mo_buf_printf(b, "moe_http_connections{kind=\"all\"} %lld\nmoe_http_connections{kind=\"held\"} %lld\nmoe_http_connections{kind=\"stream\"} %lld\n", (long long)h.connections, (long long)h.held,
		      (long long)h.streams);
}

void api_metrics(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	_cleanup_(mo_buf_done) struct mo_buf b = {0};

	family(&b, "moe_info", "gauge", "Version.");
	mo_buf_str(&b, "moe_info{version=\"" MO_VERSION "\"} 1\n");
	cluster(m, &b);
	jobs(m, &b);
	nodes(m, &b);
	controller(m, &b);
	http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", b.data, b.len, NULL);
}
