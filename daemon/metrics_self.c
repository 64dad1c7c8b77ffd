/* See metrics_self.h. */
#include "daemon/metrics_self.h"

#include <stdio.h>
#include <sys/stat.h>

#include "daemon/sample_files.h"
#include "daemon/webhooks.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/http/process_metrics.h"
#include "lib/wire/metric.h"

static void histogram(struct mo_buf *b, const char *name, const char *help, const struct timing *t)
{
	const struct metric metric = { name, METRIC_HISTOGRAM, help };
	int64_t sum = 0;

	metric_begin(b, &metric);
	for (size_t i = 0; i < TIMING_BUCKETS; i++) {
		char le[32];

		sum += t->bucket[i];
		snprintf(le, sizeof(le), "%g", timing_limits[i]);
		metric_add_part(b, &metric, "_bucket", (double)sum, METRIC_LABELS("le", le));
	}
	metric_add_part(b, &metric, "_bucket", (double)t->n, METRIC_LABELS("le", "+Inf"));
	metric_add_part(b, &metric, "_sum", t->sum_s, NULL);
	metric_add_part(b, &metric, "_count", (double)t->n, NULL);
}

static void one(struct mo_buf *b, const char *name, enum metric_kind kind, double v,
		const char *help)
{
	metric_one(b, &(struct metric){ name, kind, help }, v);
}

static void loop(const struct manager *m, struct mo_buf *b)
{
	static const struct metric events = { "moe_events_total", METRIC_COUNTER,
					      "Events since the start, by type." };

	histogram(b, "moe_turn_seconds", "Turns of the loop, sync included.", &m->turn_time);
	histogram(b, "moe_loop_lag_seconds",
		  "By how much a timer of every 250 ms came too late: as long everything waited.",
		  &m->lag_time);
	one(b, "moe_loop_longest_callback_seconds", METRIC_GAUGE,
	    (double)m->longest_callback_ns / 1e9,
	    "CPU time of the longest callback of the loop since the start: as long, at most, "
	    "everybody else waited for one message.");
	one(b, "moe_inputs_waiting", METRIC_GAUGE, (double)m->n_inputs,
	    "Messages and requests that wait for the next turn.");
	metric_begin(b, &events);
	/* all of them: what begins at 1 has not risen for Prometheus */
	for (int i = 0; i < _EVENT_TYPE_N; i++)
		metric_add(b, &events, (double)m->n_events[i],
			   METRIC_LABELS("type", event_registry[i].type));
}

static void store(const struct manager *m, struct mo_buf *b)
{
	static const struct metric bytes = { "moe_store_bytes", METRIC_GAUGE,
					     "Size of the store's files." };
	static const char *const files[] = { "moe.db", "moe.db-wal" };

	histogram(b, "moe_store_sync_seconds", "Synced transactions.", &m->sync_time);
	one(b, "moe_store_records_total", METRIC_COUNTER, (double)m->n_records,
	    "Records stored since the start.");
	one(b, "moe_store_records_since_snapshot", METRIC_GAUGE,
	    (double)store_records_since_snapshot(m->store),
	    "Records that a start would read behind the newest snapshot.");
	one(b, "moe_store_snapshots_total", METRIC_COUNTER, (double)m->n_snapshots,
	    "Snapshots of the whole state since the start; a process of their own makes them.");
	one(b, "moe_store_snapshot_failures_total", METRIC_COUNTER, (double)m->n_snapshot_failures,
	    "Snapshots that failed since the start: the records are kept instead.");
	one(b, "moe_store_full", METRIC_GAUGE, m->store_full,
	    "1 while the state disk is full and new jobs are refused.");
	one(b, "moe_sample_files_bytes", METRIC_GAUGE, (double)sample_files_bytes(m->sample_files),
	    "Size of the files with the samples of all iterations; samples_max bounds it.");
	metric_begin(b, &bytes);
	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		_cleanup_(mo_freep) char *path = mo_path(m->options->state_dir, "%s", files[i]);
		struct stat st;

		if (mo_stat(path, &st) == 0)
			metric_add(b, &bytes, (double)st.st_size, METRIC_LABELS("file", files[i]));
	}
}

static void http(const struct manager *m, struct mo_buf *b)
{
	static const struct metric requests = { "moe_http_requests_total", METRIC_COUNTER,
						"Answers by class of status." },
				   connections = {
					   "moe_http_connections", METRIC_GAUGE,
					   "Open connections: all, and of these the ones with a "
					   "request that is held, with a stream, and "
					   "those that agents speak on by frames."
				   };
	struct http_stats h;

	http_server_stats(m->http, &h);
	metric_begin(b, &requests);
	for (int i = 1; i <= 5; i++)
		metric_add(b, &requests, (double)h.by_class[i],
			   METRIC_LABELS("class", (const char *[]){ "1xx", "2xx", "3xx", "4xx",
								    "5xx" }[i - 1]));
	one(b, "moe_http_wrong_credentials_total", METRIC_COUNTER, (double)h.wrong,
	    "Requests with a token or session that is not known, was revoked or has expired.");
	one(b, "moe_http_strangers_cut_total", METRIC_COUNTER, (double)h.cut,
	    "Connections closed because too many had shown no accepted credential.");
	metric_begin(b, &connections);
	metric_add(b, &connections, (double)h.connections, METRIC_LABELS("kind", "all"));
	metric_add(b, &connections, (double)h.held, METRIC_LABELS("kind", "held"));
	metric_add(b, &connections, (double)h.streams, METRIC_LABELS("kind", "stream"));
	metric_add(b, &connections, (double)h.roads, METRIC_LABELS("kind", "road"));
}

static void webhooks(const struct manager *m, struct mo_buf *b)
{
	static const struct metric tries = {
		"moe_webhook_deliveries_total", METRIC_COUNTER,
		"Tries to post events to webhooks since the start, by what came of them."
	};

	metric_begin(b, &tries);
	for (int i = 0; i < _WEBHOOK_RESULT_N; i++)
		metric_add(b, &tries, (double)webhooks_tries(m, i),
			   METRIC_LABELS("result", webhook_result_names[i]));
}

void metrics_self(struct manager *m, struct mo_buf *b)
{
	loop(m, b);
	store(m, b);
	http(m, b);
	webhooks(m, b);
	process_metrics(b);
}
