/* GET /metrics: Prometheus text. Per-job figures only for jobs that are not over, so the number
 * of series stays bounded by what runs. */
#include "daemon/api_metrics.h"

#include <math.h>
#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/pace.h"
#include "daemon/manager.h"
#include "daemon/timing.h"

#define FINDINGS_MAX 10000 /* lines about checks */
#define GPUS_MAX 16384     /* whose sensors are listed */

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
		mo_buf_printf(b, "%s_bucket{le=\"%g\"} %lld\n", name, timing_limits[i],
			      (long long)sum);
	}
	mo_buf_printf(b, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.6f\n%s_count %lld\n", name,
		      (long long)t->n, name, t->sum_s, name, (long long)t->n);
}

/* INT64_MAX: none has ended */
static int64_t oldest_end(const struct state *s)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < s->n_jobs; i++)
		if (s->jobs[i]->ended_at != MO_NONE)
			oldest = MO_MIN(oldest, s->jobs[i]->ended_at);
	return oldest;
}

static void cluster(struct manager *m, struct mo_buf *b)
{
	int64_t oldest = oldest_end(manager_state(m));
	struct cluster_view v;

	mo_desc_init(&cluster_view_desc, &v);
	cluster_view(manager_state(m), MO_VERSION, &v);
	family(b, "moe_nodes", "gauge", "Nodes by state.");
	mo_buf_printf(b,
		      "moe_nodes{state=\"up\"} %lld\nmoe_nodes{state=\"suspect\"} "
		      "%lld\nmoe_nodes{state=\"down\"} %lld\nmoe_nodes{state=\"draining\"} "
		      "%lld\nmoe_nodes{state=\"drained\"} %lld\n",
		      (long long)v.nodes.up, (long long)v.nodes.suspect, (long long)v.nodes.down,
		      (long long)v.nodes.draining, (long long)v.nodes.drained);
	family(b, "moe_gpus", "gauge", "GPU slots.");
	mo_buf_printf(b, "moe_gpus{kind=\"total\"} %lld\nmoe_gpus{kind=\"free\"} %lld\n",
		      (long long)v.gpus.total, (long long)v.gpus.free);
	family(b, "moe_jobs", "gauge", "Jobs by state.");
	for (int i = 0; i < _JOB_STATE_N; i++)
		mo_buf_printf(b, "moe_jobs{state=\"%s\"} %lld\n", job_state_names[i],
			      (long long)MO_MAX(v.jobs[i], 0));
	family(b, "moe_steps_waiting", "gauge",
	       "Steps that wait until a GPU is given back by the job before.");
	mo_buf_printf(b, "moe_steps_waiting %lld\n", (long long)core_steps_waiting(m->core));
	family(b, "moe_history_oldest_seconds", "gauge",
	       "Since the end of the job that ended first of those that are kept.");
	if (oldest != INT64_MAX)
		mo_buf_printf(b, "moe_history_oldest_seconds %.0f\n",
			      (double)MO_MAX(manager_now(m) - oldest, 0) / 1e6);
	family(b, "moe_controller_epoch", "counter", "Starts of the controller on this state.");
	mo_buf_printf(b, "moe_controller_epoch %lld\n", (long long)v.epoch);
	mo_desc_done(&cluster_view_desc, &v);
}

static double step_ms_of(const struct job *j)
{
	return j->progress.n_samples ? j->progress.samples[j->progress.n_samples - 1].step_ms
				     : MO_NONE_F;
}
static double iteration_of(const struct job *j)
{
	return j->progress.iteration == MO_NONE ? MO_NONE_F : (double)j->progress.iteration;
}
static double restarts_of(const struct job *j)
{
	return (double)j->restarts;
}
static double loss_of(const struct job *j)
{
	return j->progress.shown.loss;
}
static double tokens_of(const struct job *j)
{
	return j->progress.shown.tokens_per_s_per_gpu;
}
static double tflops_of(const struct job *j)
{
	return j->progress.shown.tflops_per_gpu;
}
static double free_of(const struct job *j)
{
	int64_t n = j->progress.shown.checkpoint_free_bytes;

	return n == MO_NONE ? MO_NONE_F : (double)n;
}
static double mfu_of(const struct job *j)
{
	return j->progress.shown.mfu;
}

static double slower_of(const struct job *j)
{
	return j->progress.pace ? pace_lost_pct(j) / 100 : MO_NONE_F;
}
static double straggler_of(const struct job *j)
{
	return j->straggler.rank == MO_NONE ? MO_NONE_F : j->straggler.lost_pct / 100;
}

static double left_of(const struct job *j)
{
	double n = 0;

	for (size_t i = 0; i < j->straggler.n_found; i++)
		n += j->straggler.found[i].left;
	return n;
}

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
	static const struct {
		const char *name, *type, *help;
		double (*get)(const struct job *j);
	} columns[] = {
		{ "moe_job_iteration", "gauge", "Newest iteration.", iteration_of },
		{ "moe_job_loss", "gauge", "Newest loss.", loss_of },
		{ "moe_job_step_milliseconds", "gauge", "Time of the newest iteration.",
		  step_ms_of },
		{ "moe_job_restarts", "counter", "Attempts after a failure.", restarts_of },
		{ "moe_job_tokens_per_second_per_gpu", "gauge", "Throughput.", tokens_of },
		{ "moe_job_tflops_per_gpu", "gauge", "Throughput.", tflops_of },
		{ "moe_job_mfu", "gauge", "Model FLOPs utilization, a fraction.", mfu_of },
		{ "moe_job_slower_ratio", "gauge",
		  "Share of its time that the job loses against the best that it kept up.",
		  slower_of },
		{ "moe_job_straggler_lost_ratio", "gauge",
		  "Share of its time that the job loses by one rank; absent: none stands out.",
		  straggler_of },
		{ "moe_job_straggler_moves", "gauge",
		  "How often it moved away from a node by the 32 newest stragglers.", left_of },
		{ "moe_job_checkpoint_free_bytes", "gauge",
		  "Free where its checkpoints lie, when a node last looked.", free_of },
	};
	const struct state *s = manager_state(m);

	for (size_t c = 0; c < ELEMENTSOF(columns); c++) {
		family(b, columns[c].name, columns[c].type, columns[c].help);
		for (size_t i = 0; i < s->n_jobs; i++) {
			const struct job *j = s->jobs[i];
			double v = columns[c].get(j);
			if (job_state_final(j->state) || v == MO_NONE_F)
				continue;
			/* names match [A-Za-z0-9._-]: nothing to escape */
			mo_buf_printf(b, "%s{job=\"j-%lld\",name=\"%s\"} ", columns[c].name,
				      (long long)j->id, j->spec.recipe.name);
			number(b, v);
		}
	}
}

static void nodes(struct manager *m, struct mo_buf *b)
{
	const struct state *s = manager_state(m);
	int64_t now = manager_now(m);

	family(b, "moe_node_heartbeat_age_seconds", "gauge", "Time since the node was heard.");
	for (size_t i = 0; i < s->n_nodes; i++) {
		int64_t heard = node_heard_at(s, s->nodes[i]);

		if (heard > 0)
			mo_buf_printf(b, "moe_node_heartbeat_age_seconds{node=\"%s\"} %.3f\n",
				      s->nodes[i]->name, (double)MO_MAX(now - heard, 0) / 1e6);
	}
}

/* A label's value; what an agent says may hold anything. */
static void label(struct mo_buf *b, const char *value)
{
	for (const char *p = value ? value : ""; *p; p++) {
		if (*p == '\n')
			mo_buf_str(b, "\\n");
		else
			mo_buf_printf(b, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
	}
}

static void findings(struct manager *m, struct mo_buf *b)
{
	const struct state *s = manager_state(m);
	int64_t n = 0, left_out = 0;

	family(b, "moe_node_check_state", "gauge",
	       "Checks that are not OK: 1 warn, 2 crit, 3 unknown.");
	for (size_t i = 0; i < s->n_nodes; i++)
		for (size_t k = 0; s->nodes[i]->health && k < s->nodes[i]->health->n_results; k++) {
			const struct check_result *r = &s->nodes[i]->health->results[k];

			if (finding_skipped(r))
				continue;
			if (n >= FINDINGS_MAX) {
				left_out++;
				continue;
			}
			n++;
			mo_buf_printf(b, "moe_node_check_state{node=\"%s\",check=\"",
				      s->nodes[i]->name);
			label(b, r->check);
			mo_buf_str(b, "\",object=\"");
			label(b, r->object);
			mo_buf_printf(b, "\"} %d\n", r->state);
		}
	family(b, "moe_node_checks_left_out", "gauge",
	       "Checks that are not OK and not listed, because there are too many.");
	mo_buf_printf(b, "moe_node_checks_left_out %lld\n", (long long)left_out);
	family(b, "moe_nodes_cordoned", "gauge", "Nodes drained because of a finding.");
	mo_buf_printf(b, "moe_nodes_cordoned %lld\n", (long long)core_cordoned(m->core));
	family(b, "moe_health_changes_untold_total", "counter",
	       "Changes of checks that made no event, because there were too many.");
	mo_buf_printf(b, "moe_health_changes_untold_total %lld\n",
		      (long long)core_health_muted(m->core));
}

static double temp_of(const struct gpu_sensors *g)
{
	return g->temp_c;
}
static double mem_temp_of(const struct gpu_sensors *g)
{
	return g->mem_temp_c;
}
static double power_of(const struct gpu_sensors *g)
{
	return g->power_w;
}
static double clock_of(const struct gpu_sensors *g)
{
	return g->clock_mhz == MO_NONE_F ? MO_NONE_F : g->clock_mhz * 1e6;
}
static double busy_of(const struct gpu_sensors *g)
{
	return g->busy_pct == MO_NONE_F ? MO_NONE_F : g->busy_pct / 100;
}
static double vram_of(const struct gpu_sensors *g)
{
	return g->vram_used_bytes;
}
static double throttle_of(const struct gpu_sensors *g)
{
	return g->throttle_pct == MO_NONE_F ? MO_NONE_F : g->throttle_pct / 100;
}
static double ue_of(const struct gpu_sensors *g)
{
	return g->ue == MO_NONE ? MO_NONE_F : (double)g->ue;
}
static double ce_of(const struct gpu_sensors *g)
{
	return g->ce == MO_NONE ? MO_NONE_F : (double)g->ce;
}
static double replay_of(const struct gpu_sensors *g)
{
	return g->pcie_replay == MO_NONE ? MO_NONE_F : (double)g->pcie_replay;
}

/* Newest values only; what is older than half a minute is not there. */
static void sensors(struct manager *m, struct mo_buf *b)
{
	static const struct {
		const char *name, *type, *help;
		double (*get)(const struct gpu_sensors *g);
	} columns[] = {
		{ "moe_gpu_temperature_celsius", "gauge", "Junction temperature.", temp_of },
		{ "moe_gpu_memory_temperature_celsius", "gauge", "Memory temperature.",
		  mem_temp_of },
		{ "moe_gpu_power_watts", "gauge", "Socket power.", power_of },
		{ "moe_gpu_clock_hertz", "gauge", "Clock of the compute units.", clock_of },
		{ "moe_gpu_busy_ratio", "gauge", "Share of time that the GPU was busy.", busy_of },
		{ "moe_gpu_vram_used_bytes", "gauge", "Memory in use.", vram_of },
		{ "moe_gpu_throttle_ratio", "gauge", "Share of time that the GPU was throttled.",
		  throttle_of },
		{ "moe_gpu_ecc_uncorrectable_total", "counter",
		  "Uncorrectable errors of this boot.", ue_of },
		{ "moe_gpu_ecc_correctable_total", "counter", "Correctable errors of this boot.",
		  ce_of },
		{ "moe_gpu_pcie_replay_total", "counter", "PCIe replays.", replay_of },
	};
	const struct state *s = manager_state(m);
	int64_t now = manager_now(m), left_out = 0;

	for (size_t c = 0; c < ELEMENTSOF(columns); c++) {
		size_t n_gpus = 0;

		family(b, columns[c].name, columns[c].type, columns[c].help);
		for (size_t i = 0; i < s->n_nodes; i++) {
			size_t n;
			const struct gpu_sensors *g =
				core_sensors(m->core, s->nodes[i]->name, now, &n);

			n_gpus += n;
			left_out = n_gpus > GPUS_MAX ? (int64_t)(n_gpus - GPUS_MAX) : 0;
			for (size_t k = 0; k < n && n_gpus <= GPUS_MAX; k++) {
				if (columns[c].get(&g[k]) == MO_NONE_F)
					continue;
				mo_buf_printf(b, "%s{node=\"%s\",gpu=\"%lld\"} ", columns[c].name,
					      s->nodes[i]->name, (long long)g[k].slot);
				number(b, columns[c].get(&g[k]));
			}
		}
	}
	family(b, "moe_gpu_sensors_left_out", "gauge",
	       "GPUs whose sensors are not listed, because there are too many.");
	mo_buf_printf(b, "moe_gpu_sensors_left_out %lld\n", (long long)left_out);
}

static void controller(struct manager *m, struct mo_buf *b)
{
	struct http_stats h;

	http_server_stats(m->http, &h);
	histogram(b, "moe_turn_seconds", "Turns of the loop, sync included.", &m->turn_time);
	family(b, "moe_loop_longest_callback_seconds", "gauge",
	       "CPU time of the longest callback of the loop since the start: as long, at most, "
	       "everybody else waited for one message.");
	mo_buf_printf(b, "moe_loop_longest_callback_seconds %.6f\n",
		      (double)m->longest_callback_ns / 1e9);
	histogram(b, "moe_store_sync_seconds", "Synced transactions.", &m->sync_time);
	family(b, "moe_store_records_total", "counter", "Records stored since the start.");
	mo_buf_printf(b, "moe_store_records_total %lld\n", (long long)m->n_records);
	family(b, "moe_store_snapshots_total", "counter",
	       "Snapshots of the whole state since the start; a process of their own makes them.");
	mo_buf_printf(b, "moe_store_snapshots_total %lld\n", (long long)m->n_snapshots);
	family(b, "moe_store_snapshot_failures_total", "counter",
	       "Snapshots that failed since the start: the records are kept instead.");
	mo_buf_printf(b, "moe_store_snapshot_failures_total %lld\n",
		      (long long)m->n_snapshot_failures);
	family(b, "moe_store_full", "gauge",
	       "1 while the state disk is full and new jobs are refused.");
	mo_buf_printf(b, "moe_store_full %d\n", m->store_full);
	family(b, "moe_http_requests_total", "counter", "Answers by class of status.");
	for (int i = 1; i <= 5; i++)
		mo_buf_printf(b, "moe_http_requests_total{class=\"%dxx\"} %lld\n", i,
			      (long long)h.by_class[i]);
	family(b, "moe_http_wrong_credentials_total", "counter",
	       "Requests with a token or session that is not known, was revoked or has expired.");
	mo_buf_printf(b, "moe_http_wrong_credentials_total %lld\n", (long long)h.wrong);
	family(b, "moe_http_strangers_cut_total", "counter",
	       "Connections closed because too many had shown no accepted credential.");
	mo_buf_printf(b, "moe_http_strangers_cut_total %lld\n", (long long)h.cut);
	family(b, "moe_http_connections", "gauge",
	       "Open connections; held requests and streams among them.");
	mo_buf_printf(b,
		      "moe_http_connections{kind=\"all\"} "
		      "%lld\nmoe_http_connections{kind=\"held\"} "
		      "%lld\nmoe_http_connections{kind=\"stream\"} %lld\n",
		      (long long)h.connections, (long long)h.held, (long long)h.streams);
}

void api_metrics(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	family(&b, "moe_info", "gauge", "Version.");
	mo_buf_str(&b, "moe_info{version=\"" MO_VERSION "\"} 1\n");
	cluster(m, &b);
	jobs(m, &b);
	nodes(m, &b);
	findings(m, &b);
	sensors(m, &b);
	controller(m, &b);
	http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", b.data, b.len, NULL);
}
