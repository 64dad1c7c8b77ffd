/* See metrics.h. One page, for anybody who can connect: it has no secrets and changes nothing. The
 * number of series is bounded by the node's devices and by the ranks that run on it. */
#include "agent/metrics.h"

#include <stdio.h>

#include "agent/core/agent/motion.h"
#include "agent/health.h"
#include "agent/step_dir.h"
#include "lib/base/log.h"
#include "lib/http/server.h"
#include "lib/http/process_metrics.h"
#include "lib/wire/metric.h"

#define CONNECTIONS 32
#define IDLE_S 10

struct metrics {
	struct manager *manager;
	struct http_server *http;
};
struct one {
	struct manager *m;
	struct mo_buf *b;
	const char *node;
	struct gpu_sensors *gpus;
	size_t n_gpus;
	struct nic_sensors *nics;
	size_t n_nics;
};

static double or_none(int64_t n)
{
	return n == MO_NONE ? MO_NONE_F : (double)n;
}

static double scaled(double v, double by)
{
	return v == MO_NONE_F ? v : v * by;
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
	return scaled(g->clock_mhz, 1e6);
}
static double busy_of(const struct gpu_sensors *g)
{
	return scaled(g->busy_pct, 0.01);
}
static double vram_of(const struct gpu_sensors *g)
{
	return g->vram_used_bytes;
}
static double throttle_of(const struct gpu_sensors *g)
{
	return scaled(g->throttle_pct, 0.01);
}
static double ue_of(const struct gpu_sensors *g)
{
	return or_none(g->ue);
}
static double ce_of(const struct gpu_sensors *g)
{
	return or_none(g->ce);
}
static double replay_of(const struct gpu_sensors *g)
{
	return or_none(g->pcie_replay);
}

static const struct {
	struct metric metric;
	double (*get)(const struct gpu_sensors *g);
} gpu_figures[] = {
	{ { "moe_gpu_temperature_celsius", METRIC_GAUGE, "Junction temperature." }, temp_of },
	{ { "moe_gpu_memory_temperature_celsius", METRIC_GAUGE, "Memory temperature." },
	  mem_temp_of },
	{ { "moe_gpu_power_watts", METRIC_GAUGE, "Socket power." }, power_of },
	{ { "moe_gpu_clock_hertz", METRIC_GAUGE, "Clock of the compute units." }, clock_of },
	{ { "moe_gpu_busy_ratio", METRIC_GAUGE, "Share of time that the GPU was busy." }, busy_of },
	{ { "moe_gpu_vram_used_bytes", METRIC_GAUGE, "Memory in use." }, vram_of },
	{ { "moe_gpu_throttle_ratio", METRIC_GAUGE, "Share of time that the GPU was throttled." },
	  throttle_of },
	{ { "moe_gpu_ecc_uncorrectable_total", METRIC_COUNTER,
	    "Uncorrectable errors of this boot." },
	  ue_of },
	{ { "moe_gpu_ecc_correctable_total", METRIC_COUNTER, "Correctable errors of this boot." },
	  ce_of },
	{ { "moe_gpu_pcie_replay_total", METRIC_COUNTER, "PCIe replays." }, replay_of },
};

static int64_t down_of(const struct nic_sensors *s)
{
	return s->link_downed;
}
static int64_t symbol_of(const struct nic_sensors *s)
{
	return s->symbol_error;
}
static int64_t receive_of(const struct nic_sensors *s)
{
	return s->rcv_errors;
}
static int64_t sequence_of(const struct nic_sensors *s)
{
	return s->out_of_sequence;
}
static int64_t timeout_of(const struct nic_sensors *s)
{
	return s->local_ack_timeout;
}

static const struct {
	struct metric metric;
	int64_t (*get)(const struct nic_sensors *s);
} nic_figures[] = {
	{ { "moe_nic_link_downed_total", METRIC_COUNTER, "Times that the link went down." },
	  down_of },
	{ { "moe_nic_symbol_errors_total", METRIC_COUNTER, "Symbol errors." }, symbol_of },
	{ { "moe_nic_receive_errors_total", METRIC_COUNTER, "Packets received with an error." },
	  receive_of },
	{ { "moe_nic_out_of_sequence_total", METRIC_COUNTER, "Packets out of sequence." },
	  sequence_of },
	{ { "moe_nic_ack_timeouts_total", METRIC_COUNTER, "Acknowledgements that did not come." },
	  timeout_of },
};

static const char *slot_name(int64_t slot, char ret[24])
{
	snprintf(ret, 24, "%lld", (long long)slot);
	return ret;
}

static void gpus(const struct one *o)
{
	char slot[24];

	for (size_t f = 0; f < ELEMENTSOF(gpu_figures); f++) {
		const struct metric *m = &gpu_figures[f].metric;

		metric_begin(o->b, m);
		for (size_t i = 0; i < o->n_gpus; i++)
			metric_add(o->b, m, gpu_figures[f].get(&o->gpus[i]),
				   METRIC_LABELS("node", o->node, "gpu",
						 slot_name(o->gpus[i].slot, slot)));
	}
}

static void nics(const struct one *o)
{
	static const struct metric up = { "moe_nic_link_up", METRIC_GAUGE,
					  "1: the port of an RDMA card is active." };

	metric_begin(o->b, &up);
	for (size_t i = 0; i < o->n_nics; i++)
		metric_add(o->b, &up,
			   o->nics[i].state ? mo_streq(o->nics[i].state, "ACTIVE") : MO_NONE_F,
			   METRIC_LABELS("node", o->node, "nic", o->nics[i].name));
	for (size_t f = 0; f < ELEMENTSOF(nic_figures); f++) {
		const struct metric *m = &nic_figures[f].metric;

		metric_begin(o->b, m);
		for (size_t i = 0; i < o->n_nics; i++)
			metric_add(o->b, m, or_none(nic_figures[f].get(&o->nics[i])),
				   METRIC_LABELS("node", o->node, "nic", o->nics[i].name));
	}
}

static const char *pci_of(const struct nodeinfo *info, int64_t slot)
{
	for (size_t i = 0; i < info->n_gpus; i++)
		if (info->gpus[i].index == slot)
			return info->gpus[i].bdf;
	return NULL;
}

/* GPUs of a rank: its own, or all of the step's for the one rank of the node. */
static void assigned(const struct one *o, const struct metric *m, const struct step_dir *d)
{
	const struct launch *l = &d->spool.launch;
	char job[24], rank[24], slot[24];

	snprintf(job, sizeof(job), "j-%lld", (long long)d->job);
	for (size_t i = 0; i < l->n_gpus; i++)
		metric_add(o->b, m, 1,
			   METRIC_LABELS("node", o->node, "gpu", slot_name(l->gpus[i], slot), "pci",
					 pci_of(&o->m->info, l->gpus[i]), "job", job, "rank",
					 slot_name(l->first_rank +
							   (l->n_local > 1 ? (int64_t)i : 0),
						   rank)));
}

static bool runs(const struct step_dir *d)
{
	return !d->gone && !d->held && !d->forgotten;
}

static void assignments(const struct one *o)
{
	static const struct metric metric = { "moe_gpu_assignment_info", METRIC_GAUGE,
					      "Which rank of which job has a GPU; joins other "
					      "exporters' series by node and pci." };

	metric_begin(o->b, &metric);
	for (size_t i = 0; i < o->m->n_steps; i++)
		if (runs(o->m->steps[i]))
			assigned(o, &metric, o->m->steps[i]);
}

static void ranks(const struct one *o)
{
	static const struct metric iteration = { "moe_rank_iteration", METRIC_GAUGE,
						 "Newest iteration that the rank told of." },
				   step = { "moe_rank_step_seconds", METRIC_GAUGE,
					    "Time of that iteration." };

	for (int f = 0; f < 2; f++) {
		metric_begin(o->b, f ? &step : &iteration);
		for (size_t i = 0; i < o->m->n_steps; i++) {
			const struct step_dir *d = o->m->steps[i];
			_cleanup_(mo_freep) struct rank_progress *all = NULL;
			char job[24], rank[24];
			size_t n = 0;

			if (!runs(d))
				continue;
			snprintf(job, sizeof(job), "j-%lld", (long long)d->job);
			all = agent_core_progress(o->m->core, d->job, d->attempt, &n);
			for (size_t k = 0; k < n; k++)
				metric_add(o->b, f ? &step : &iteration,
					   f ? scaled(all[k].step_ms, 1e-3)
					     : or_none(all[k].iteration),
					   METRIC_LABELS("node", o->node, "job", job, "rank",
							 slot_name(all[k].rank, rank)));
		}
	}
}

static void checks(const struct one *o)
{
	static const struct metric metric = { "moe_check_state", METRIC_GAUGE,
					      "Checks that are not OK: 1 warn, 2 crit, "
					      "3 unknown." };
	const struct node_health *h = watch_results(o->m->watch);

	metric_begin(o->b, &metric);
	for (size_t i = 0; h && i < h->n_results; i++)
		metric_add(o->b, &metric, h->results[i].state,
			   METRIC_LABELS("node", o->node, "check", h->results[i].check, "object",
					 h->results[i].object));
}

static void on_scrape(void *arg, struct http_request *r)
{
	static const struct metric build = { "moe_agent_build_info", METRIC_GAUGE, "Version." };
	const struct metrics *e = arg;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct one o = { .m = e->manager, .b = &b, .node = e->manager->config->node };

	watch_newest(o.m->watch, &o.gpus, &o.n_gpus, &o.nics, &o.n_nics);
	metric_begin(&b, &build);
	metric_add(&b, &build, 1, METRIC_LABELS("node", o.node, "version", MO_VERSION));
	gpus(&o);
	nics(&o);
	assignments(&o);
	ranks(&o);
	checks(&o);
	process_metrics(&b);
	http_reply(r, 200, METRIC_CONTENT_TYPE, b.data, b.len, NULL);
	mo_vec_clear(&gpu_sensors_desc, (void **)&o.gpus, &o.n_gpus);
	mo_vec_clear(&nic_sensors_desc, (void **)&o.nics, &o.n_nics);
}

static const struct http_route routes[] = {
	{ "GET", "/metrics", ROLE_NONE, on_scrape, 0, false, NULL },
};

/* Nobody has a credential here. */
static bool nobody(void *arg, const char *secret, bool by_cookie, struct http_caller *ret)
{
	return false;
}

struct metrics *metrics_new(struct manager *m)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct metrics *e = mo_alloc(sizeof(*e));
	struct http_server_config config = {
		.arg = e,
		.tcp_address = m->config->metrics_listen,
		.tcp_port = m->config->metrics_port,
		.routes = routes,
		.n_routes = ELEMENTSOF(routes),
		.authenticate = nobody,
		.idle_timeout_s = IDLE_S,
		.max_connections = CONNECTIONS,
	};

	int r;

	e->manager = m;
	r = config.tcp_port < 0 ? 0 : http_server_new(m->loop, &config, &e->http, &err);
	if (r < 0)
		mo_log(MO_ERR, NULL, NULL,
		       "metrics_port: %s; the node works on without metrics until the agent is "
		       "started again",
		       mo_error_text(&err, r));
	return e;
}

struct metrics *metrics_free(struct metrics *e)
{
	if (e) {
		http_server_free(e->http);
		free(e);
	}
	return NULL;
}

int64_t metrics_port(const struct metrics *e)
{
	return e && e->http ? http_server_port(e->http) : MO_NONE;
}
