/* Prometheus' text format (exposition format 0.0.4): what moed and moe-agent answer to a scrape.
 * Names: prefix moe_, base units (seconds, bytes, ratio of 1), _total on counters; `promtool check
 * metrics` finds nothing. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/desc.h"

#define METRIC_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_SUMMARY, METRIC_HISTOGRAM };
struct metric {
	const char *name;
	enum metric_kind kind;
	const char *help;
};
/* Its HELP and TYPE. Its samples follow, before those of any other. */
void metric_begin(struct mo_buf *b, const struct metric *m);
/* A sample of it. labels: METRIC_LABELS(NAME, VALUE, ...), values of any bytes, or NULL. v
 * MO_NONE_F: nothing is written, as it is not known. */
void metric_add(struct mo_buf *b, const struct metric *m, double v, const char *const *labels);
/* A sample of a histogram or summary: its name with `suffix` behind it (_bucket, _sum, _count). */
void metric_add_part(struct mo_buf *b, const struct metric *m, const char *suffix, double v,
		     const char *const *labels);
#define METRIC_LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* Both, for one without labels. */
void metric_one(struct mo_buf *b, const struct metric *m, double v);
