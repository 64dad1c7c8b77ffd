/* See report_md.h. Who reads an issue has no cluster: it says which job on which version, where its
 * time went, what happened with all evidence, and from where it can go on. Evidence stands in code
 * blocks, word for word. */
#include "cli/report_md.h"

#include <string.h>

#include "cli/scrub.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/util.h"

#define INCIDENTS 20 /* the newest; an issue holds 64 KiB */

/* A text in a line or a cell: what Markdown would read as a sign is led by a backslash. */
static void add_text(struct mo_buf *to, const char *s)
{
	for (s = text_or(s); *s; s++) {
		if (strchr("\\`*_{}[]<>|~#&!$", *s))
			mo_buf_str(to, "\\");
		mo_buf_add(to, *s == '\n' || *s == '\r' || *s == '\t' ? " " : s, 1);
	}
}

static void add_row(struct mo_buf *to, const char *name, const char *text)
{
	mo_buf_printf(to, "| %s | ", name);
	add_text(to, text);
	mo_buf_str(to, " |\n");
}

/* Backticks that open a block which no line of these can close: more than stand together in any. */
static size_t fence_of(struct json_object *lines)
{
	size_t most = 2;

	for (size_t i = 0; i < js_len(lines); i++) {
		const char *s = json_object_get_string(js_at(lines, i));

		for (size_t n = 0; (s = strchr(s + n, '`')); most = MO_MAX(most, n))
			n = strspn(s, "`");
	}
	return most + 1;
}

static void add_evidence(struct mo_buf *to, struct json_object *lines)
{
	size_t n = fence_of(lines);

	if (!js_len(lines))
		return;
	for (size_t i = 0; i < n; i++)
		mo_buf_str(to, "`");
	mo_buf_str(to, "text\n");
	for (size_t i = 0; i < js_len(lines); i++)
		mo_buf_printf(to, "%s\n", json_object_get_string(js_at(lines, i)));
	for (size_t i = 0; i < n; i++)
		mo_buf_str(to, "`");
	mo_buf_str(to, "\n\n");
}

static void add_job(struct mo_buf *to, const struct report_docs *d)
{
	struct json_object *j = d->job, *r = d->report;
	_cleanup_(mo_freep) char *who = mo_printf("%s (%s), by %s", text_or(js_str(j, "id")),
						  text_or(js_str(j, "name")),
						  text_or(js_str(j, "user"))),
				 *ranks =
					 mo_printf("%s on %zu node%s", text_int(js_int(j, "ranks")),
						   js_len(js_get(j, "nodes")),
						   js_len(js_get(j, "nodes")) == 1 ? "" : "s"),
				 *attempts = mo_printf("%s, %s of them after failures",
						       text_int(js_int(j, "attempt")),
						       text_int(js_int(r, "restarts"))),
				 *times = mo_printf("created %s, started %s, ended %s",
						    text_or(js_str(j, "created_at")),
						    text_or(js_str(j, "started_at")),
						    text_or(js_str(j, "ended_at"))),
				 *shares = mo_printf("%s, %s, %s", text_percent(js_real(r, "ettr")),
						     text_percent(js_real(r, "goodput")),
						     text_percent(js_real(r, "mfu")));

	mo_buf_str(to, "| job | ");
	add_text(to, who);
	mo_buf_str(to, " |\n|--|--|\n");
	add_row(to, "state", js_str(j, "state"));
	add_row(to, "reason", js_str(j, "reason"));
	add_row(to, "ranks", ranks);
	add_row(to, "iteration", text_span(js_int(j, "iteration"), js_int(j, "steps")));
	add_row(to, "attempts", attempts);
	add_row(to, "times", times);
	add_row(to, "wall time", text_seconds(js_real(r, "wall_s")));
	add_row(to, "ETTR, goodput, MFU", shares);
	add_row(to, "controller", js_str(d->cluster, "version"));
}

/* Categories as the document has them, without those that took nothing. */
static void add_ledger(struct mo_buf *to, struct json_object *seconds)
{
	double total = js_real(seconds, "total");

	mo_buf_str(to, "\n## GPU time\n\n| | GPU-s | share |\n|--|--:|--:|\n");
	if (seconds) {
		json_object_object_foreach(seconds, name, v) {
			bool queue = strcmp(name, "queue") == 0;

			if (!v || strcmp(name, "total") == 0 || json_object_get_double(v) <= 0)
				continue;
			mo_buf_printf(to, "| %s | %s | %s |\n",
				      queue ? "queue (none of the total)" : name,
				      text_real(json_object_get_double(v), 1),
				      queue || !(total > 0)
					      ? "-"
					      : text_percent(json_object_get_double(v) / total));
		}
	}
	mo_buf_printf(to, "| total | %s | %s |\n", text_real(total, 1), total > 0 ? "100 %" : "-");
}

/* "detect 12 ms, stop 1.2 s, ...: 14 s so far" */
static void add_waterfall(struct mo_buf *to, struct json_object *parts, const char *open)
{
	double total = 0;

	if (parts) {
		json_object_object_foreach(parts, name, v) {
			if (!v)
				continue;
			mo_buf_printf(to, "%s%s %s", total > 0 ? ", " : "- restart: ", name,
				      text_seconds(json_object_get_double(v) / 1000));
			total += MO_MAX(json_object_get_double(v), 1e-9);
		}
	}
	if (total > 0)
		mo_buf_printf(to, "; together %s%s\n", text_seconds(total / 1000),
			      open ? " so far" : "");
}

static void add_incident(struct mo_buf *to, struct json_object *k, size_t number)
{
	mo_buf_printf(to, "### %zu. ", number);
	add_text(to, js_str(k, "class"));
	if (js_int(k, "first_rank") != MO_NONE)
		mo_buf_printf(to, ", first rank %s", text_int(js_int(k, "first_rank")));
	if (js_str(k, "node")) {
		mo_buf_str(to, " on ");
		add_text(to, js_str(k, "node"));
	}
	mo_buf_printf(to, ", attempt %s, %s\n\n- cause: ", text_int(js_int(k, "attempt")),
		      text_or(js_str(k, "time")));
	add_text(to, js_str(k, "cause"));
	mo_buf_str(to, "\n- action: ");
	add_text(to, js_str(k, "action"));
	mo_buf_str(to, "\n");
	if (js_int(k, "lost_iterations") != MO_NONE)
		mo_buf_printf(to, "- lost: %s iterations\n",
			      text_int(js_int(k, "lost_iterations")));
	add_waterfall(to, js_get(k, "waterfall_ms"), js_str(k, "open"));
	mo_buf_str(to, "\n");
	add_evidence(to, js_get(k, "evidence"));
	add_evidence(to, js_get(k, "later"));
}

static void add_incidents(struct mo_buf *to, struct json_object *incidents)
{
	size_t n = js_len(incidents), first = n > INCIDENTS ? n - INCIDENTS : 0;

	mo_buf_printf(to, "\n## Incidents: %zu\n\n", n);
	if (first)
		mo_buf_printf(to, "The newest %d; `moectl report JOB` shows all.\n\n", INCIDENTS);
	for (size_t i = first; i < n; i++)
		add_incident(to, js_at(incidents, i), i + 1);
}

static void add_checkpoints(struct mo_buf *to, struct json_object *list)
{
	struct json_object *items = js_items(list);
	int64_t earlier = js_int(list, "earlier");

	mo_buf_printf(to, "## Checkpoints: %lld\n",
		      (long long)((int64_t)js_len(items) + MO_MAX(earlier, (int64_t)0)));
	if (js_len(items))
		mo_buf_str(to, "\n| iteration | state | size | saved | path | reason |\n"
			       "|--:|--|--:|--|--|--|\n");
	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *c = js_at(items, i);

		mo_buf_printf(to, "| %s | %s | %s | %s | ", text_int(js_int(c, "iteration")),
			      text_or(js_str(c, "state")), text_bytes(js_int(c, "bytes")),
			      text_or(js_str(c, "saved_at")));
		add_text(to, js_str(c, "path"));
		mo_buf_str(to, " | ");
		add_text(to, js_str(c, "reason") ? js_str(c, "reason") : js_str(c, "held"));
		mo_buf_str(to, " |\n");
	}
	if (earlier > 0)
		mo_buf_printf(to, "\n%lld earlier ones are not shown.\n", (long long)earlier);
}

void report_md(const struct report_docs *docs, struct mo_buf *to)
{
	const struct report_docs d = { scrubbed(docs->job), scrubbed(docs->report),
				       scrubbed(docs->checkpoints), scrubbed(docs->cluster) };

	add_job(to, &d);
	add_ledger(to, js_get(d.report, "gpu_seconds"));
	add_incidents(to, js_get(d.report, "incidents"));
	add_checkpoints(to, d.checkpoints);
	json_object_put(d.job);
	json_object_put(d.report);
	json_object_put(d.checkpoints);
	json_object_put(d.cluster);
}
