/* GET /metrics: Prometheus text, a part per file: what there is, what it does, how the controller
 * does. The number of series is bounded by jobs that are not over and by what is wrong. */
#include "daemon/api_metrics.h"

#include "daemon/metrics_jobs.h"
#include "daemon/metrics_nodes.h"
#include "daemon/metrics_self.h"
#include "lib/wire/metric.h"

void api_metrics(void *arg, struct http_request *r)
{
	static const struct metric build = { "moe_build_info", METRIC_GAUGE, "Version." };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	metric_begin(&b, &build);
	metric_add(&b, &build, 1, METRIC_LABELS("version", MO_VERSION));
	metrics_nodes(arg, &b);
	metrics_jobs(arg, &b);
	metrics_self(arg, &b);
	http_reply(r, 200, METRIC_CONTENT_TYPE, b.data, b.len, NULL);
}
