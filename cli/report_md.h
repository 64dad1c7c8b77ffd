/* A report as Markdown, to be pasted into an issue. Pure. */
#pragma once
#include <json-c/json.h>
#include "lib/base/buf.h"

/* What it is made of, documents of the routes, borrowed: Job, Report, a list of its newest
 * checkpoints with `earlier`, Cluster. Members that are missing are "-". */
struct report_docs {
	struct json_object *job, *report, *checkpoints, *cluster;
};
/* Appends it. Texts that others wrote cannot end a table, a code block or a line of it, and what
 * looks like a credential is ***. */
void report_md(const struct report_docs *docs, struct mo_buf *to);
