/* report: where the GPU time of a job went, and what happened to it. */
#include "cli/report.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report_md.h"
#include "cli/text.h"
#include "cli/value.h"

static const char *const categories[] = { "productive", "image",     "launch", "init",
					  "load",       "recompute", "save",   "hang",
					  "detect",     "drain",     "idle",   "spare" };

#define BAR_AT 37 /* columns before it */
#define BAR_MOST 40

static void print_ledger(const struct cli *cli, struct json_object *report)
{
	double total = js_real(report, "gpu_seconds.total"),
	       queue = js_real(report, "gpu_seconds.queue");
	/* a wrapped bar tells nothing */
	int room = cli->width ? MO_MIN(cli->width - BAR_AT, BAR_MOST) : BAR_MOST;
	printf("GPU time     %s GPU-s", text_real(total, 1));
	if (queue > 0)
		printf(", after %s in the queue, which is none", text_real(queue, 1));
	putchar('\n');
	for (size_t i = 0; i < ELEMENTSOF(categories); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("gpu_seconds.%s", categories[i]);
		double v = js_real(report, path);
		if (v == MO_NONE_F || (v == 0 && strcmp(categories[i], "productive")))
			continue;
		int bar = total > 0 && room > 0 ? (int)(v / total * room + 0.5) : 0;
		printf("  %-11s%12s  %6.2f %%%s", categories[i], text_real(v, 1),
		       total > 0 ? v / total * 100 : 0.0, bar ? "  " : "");
		for (int k = 0; k < bar; k++)
			putchar('#');
		putchar('\n');
		if (!strcmp(categories[i], "launch") && js_real(report, "prepare.gpu_s") > 0)
			printf("    prepare%14s  %6.2f %%  engine.prepare: %s\n",
			       text_real(js_real(report, "prepare.gpu_s"), 1),
			       total > 0 ? js_real(report, "prepare.gpu_s") / total * 100 : 0.0,
			       text_or(js_str(report, "prepare.text")));
	}
}

/* what,attempt,name,value: an empty value is not known. */
static void csv_line(const char *what, const char *attempt, const char *name, double value)
{
	printf(value == MO_NONE_F ? "%s,%s,%s,\n" : "%s,%s,%s,%.15g\n", what, attempt, name, value);
}

static void print_ledger_csv(struct json_object *r)
{
	csv_line("gpu_seconds", "", "total", js_real(r, "gpu_seconds.total"));
	csv_line("gpu_seconds", "", "queue", js_real(r, "gpu_seconds.queue"));
	for (size_t i = 0; i < ELEMENTSOF(categories); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("gpu_seconds.%s", categories[i]);

		csv_line("gpu_seconds", "", categories[i], js_real(r, path));
	}
}

static const char *const phases[] = { "unfinished", "detect", "stop", "place",    "image",
				      "launch",     "init",   "load", "recompute" };

/* unknown: iterations were lost, and how long it took to do them again is not known, or not yet. */
static void print_waterfall(struct json_object *w, const char *open, bool unknown)
{
	double total = 0, at = 0;
	for (size_t i = 0; i < ELEMENTSOF(phases); i++)
		total += js_real(w, phases[i]) > 0 ? js_real(w, phases[i]) : 0;
	for (size_t i = 0; i < ELEMENTSOF(phases) && total > 0; i++) {
		double v = js_real(w, phases[i]);
		if (v == MO_NONE_F)
			continue;
		int from = (int)(at / total * 36), to = (int)((at + v) / total * 36);
		printf("      %-10s %9s  |", phases[i], text_seconds(v / 1000));
		for (int k = 0; k < 37; k++)
			putchar(k < from || k > to || v <= 0 ? ' ' : '=');
		puts(open && !strcmp(open, phases[i]) ? "|  still open" : "|");
		at += v;
	}
	if (unknown && total > 0)
		printf("      %-10s %9s\n", "recompute", "not known");
	if (total > 0)
		printf("      %-10s %9s%s\n", "total", text_seconds(total / 1000),
		       open ? " so far" : "");
}

static void print_incidents(const struct cli *cli, struct json_object *incidents)
{
	for (size_t i = 0; i < js_len(incidents); i++) {
		struct json_object *k = js_at(incidents, i), *evidence = js_get(k, "evidence");
		printf("\n#%zu  %s  %s", i + 1, text_clock(js_str(k, "time")),
		       paint(cli, "33", text_or(js_str(k, "class"))));
		if (js_int(k, "first_rank") != MO_NONE)
			printf("  first rank %s", text_int(js_int(k, "first_rank")));
		if (js_str(k, "node"))
			printf(" on %s", js_str(k, "node"));
		printf("  attempt %s\n    cause   %s\n", text_int(js_int(k, "attempt")),
		       text_or(js_str(k, "cause")));
		for (size_t e = 0; e < js_len(evidence); e++)
			printf("    %-7s %s\n", e ? "" : "seen",
			       json_object_get_string(js_at(evidence, e)));
		printf("    action  %s\n", text_or(js_str(k, "action")));
		if (js_int(k, "lost_iterations") != MO_NONE)
			printf("    lost    %s iterations\n",
			       text_int(js_int(k, "lost_iterations")));
		print_waterfall(js_get(k, "waterfall_ms"), js_str(k, "open"),
				js_int(k, "lost_iterations") > 0 &&
					js_real(k, "waterfall_ms.recompute") == MO_NONE_F);
	}
}

/* Of several restarts; of one its own waterfall says the same. */
static void print_restarts(struct json_object *parts)
{
	if (js_int(js_at(parts, 0), "n") < 2)
		return;
	printf("\nrestarts     %-10s %9s %9s\n", "", "p50", "p95");
	for (size_t i = 0; i < js_len(parts); i++) {
		struct json_object *p = js_at(parts, i);

		if (js_int(p, "n") > 0)
			printf("             %-10s %9s %9s  of %s\n", js_str(p, "part"),
			       text_seconds(js_real(p, "p50_ms") / 1000),
			       text_seconds(js_real(p, "p95_ms") / 1000), text_int(js_int(p, "n")));
	}
}

static void print_figures(struct json_object *r)
{
	if (js_real(r, "ettr_hour") != MO_NONE_F)
		printf("last hour    ETTR %s\n", text_percent(js_real(r, "ettr_hour")));
	if (js_real(r, "gpu_seconds.recompute") > 0)
		printf("what if      with per-iteration saves, at no cost, this run would be at "
		       "ETTR "
		       "%s\n",
		       text_percent(js_real(r, "ettr_saving_each")));
	if (js_str(r, "data_order.text"))
		printf("data         %s\n", js_str(r, "data_order.text"));
	if (js_real(r, "overdue_s") > 0)
		printf("overdue      the iteration under way, by %s: counted as hang\n",
		       text_seconds(js_real(r, "overdue_s")));
}

static void print_csv(struct json_object *r)
{
	static const char *const figures[] = { "wall_s",    "ettr",
					       "ettr_hour", "ettr_saving_each",
					       "overdue_s", "goodput",
					       "mfu",       "restarts" };
	struct json_object *parts = js_get(r, "restart_parts"), *incidents = js_get(r, "incidents");

	puts("what,attempt,name,value");
	for (size_t i = 0; i < ELEMENTSOF(figures); i++)
		csv_line("figure", "", figures[i], js_real(r, figures[i]));
	print_ledger_csv(r);
	for (size_t i = 0; i < js_len(parts); i++) {
		csv_line("restart_p50_ms", "", js_str(js_at(parts, i), "part"),
			 js_real(js_at(parts, i), "p50_ms"));
		csv_line("restart_p95_ms", "", js_str(js_at(parts, i), "part"),
			 js_real(js_at(parts, i), "p95_ms"));
	}
	for (size_t i = 0; i < js_len(incidents); i++) {
		_cleanup_(mo_freep) char *attempt =
			mo_strdup(text_int(js_int(js_at(incidents, i), "attempt")));
		struct json_object *w = js_get(js_at(incidents, i), "waterfall_ms");

		for (size_t k = 0; k < ELEMENTSOF(phases); k++)
			csv_line("waterfall_ms", attempt, phases[k], js_real(w, phases[k]));
	}
}

static void print_report(const struct cli *cli, const char *id, struct json_object *r)
{
	printf("%s  %s wall time, %s restart%s, ETTR %s, goodput %s, MFU %s\n\n",
	       paint(cli, "1", id), text_seconds(js_real(r, "wall_s")),
	       text_int(js_int(r, "restarts")), js_int(r, "restarts") == 1 ? "" : "s",
	       text_percent(js_real(r, "ettr")), text_percent(js_real(r, "goodput")),
	       text_percent(js_real(r, "mfu")));
	print_figures(r);
	print_ledger(cli, r);
	print_restarts(js_get(r, "restart_parts"));
	print_incidents(cli, js_get(r, "incidents"));
	if (!js_len(js_get(r, "incidents")))
		puts("\nno incidents");
}

static int print_md(struct cli *cli, const char *id, struct json_object *report)
{
	_cleanup_(answer_done) struct answer job = { 0 }, checkpoints = { 0 }, cluster = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int r;

	if ((r = client_get(cli, id, &job, "/v1/jobs/%s", id)) ||
	    (r = client_get(cli, id, &checkpoints, "/v1/jobs/%s/checkpoints?last=1&limit=10",
			    id)) ||
	    (r = client_get(cli, NULL, &cluster, "/v1/cluster")))
		return r;
	report_md(&(struct report_docs){ job.doc, report, checkpoints.doc, cluster.doc }, &text);
	fputs(text.data, stdout);
	return CLI_OK;
}

static int show_window(struct cli *cli, const char *id, const char *window, bool csv)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = url_quote(window);
	int r = client_get(cli, id, &a, "/v1/jobs/%s/ledger?window=%s", id, quoted);

	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	if (csv) {
		puts("what,attempt,name,value");
		csv_line("figure", "", "ettr", js_real(a.doc, "ettr"));
		csv_line("figure", "", "goodput", js_real(a.doc, "goodput"));
		print_ledger_csv(a.doc);
		return CLI_OK;
	}
	printf("%s  from %s to %s, ETTR %s, goodput %s\n\n", paint(cli, "1", id),
	       text_or(js_str(a.doc, "from")), text_or(js_str(a.doc, "to")),
	       text_percent(js_real(a.doc, "ettr")), text_percent(js_real(a.doc, "goodput")));
	print_ledger(cli, a.doc);
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *window = NULL;
	bool anchor = false, csv = false, md = false;
	const struct opt opts[] = { { "anchor", 0, OPT_FLAG, &anchor },
				    { "csv", 0, OPT_FLAG, &csv },
				    { "md", 0, OPT_FLAG, &md },
				    { "window", 0, OPT_STR, &window } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);
	if (!r && !args[0] && !anchor)
		r = cli_misuse(cli, "JOB is missing; only --anchor does without");
	if (!r && md && (csv || anchor || cli->json))
		r = cli_misuse(cli, "--md and --%s exclude each other",
			       csv      ? "csv"
			       : anchor ? "anchor"
					: "json");
	if (!r && window && (md || anchor))
		r = cli_misuse(cli, "--window and --%s exclude each other", md ? "md" : "anchor");
	if (r)
		return cli_stop(r);
	if (!args[0])
		return (r = client_get(cli, NULL, &a, "/v1/anchors")) ? r : print_answer(&a);
	if ((r = client_job(cli, args[0], &id)))
		return r;
	if (window)
		return show_window(cli, id, window, csv);
	if ((r = client_get(cli, id, &a, "/v1/jobs/%s/report%s", id, anchor ? "?anchor=1" : "")))
		return r;
	if (cli->json || anchor)
		return print_answer(&a);
	if (csv) {
		print_csv(a.doc);
		return CLI_OK;
	}
	if (md)
		return print_md(cli, id, a.doc);
	print_report(cli, id, a.doc);
	return CLI_OK;
}

const struct verb verb_report = {
	"report",
	"Look",
	"report JOB [--window TIME] [--csv] [--md] [--anchor] | --anchor",
	"GPU time by category, ETTR, incidents and what each restart cost",
	"  --anchor   the measured step time and memory in the form that `moectl plan --anchor` "
	"reads; without JOB of all runs that calibrate the controller's plans\n"
	"  --csv      what,attempt,name,value: figures, GPU-seconds, waterfalls\n"
	"  --md       Markdown to paste into an issue: the job, its GPU time, incidents with "
	"evidence, checkpoints; what looks like a credential is ***\n"
	"  --window TIME   GPU time of the last 30m, 1h, 7d ... alone, of a job that ended: before "
	"its "
	"end; it begins up to five minutes, or a twelfth, earlier\n"
	"\"hang\": what no iteration explains, beyond 3 times the recent one and 10 s; \"queue\" "
	"is no "
	"GPU time. "
	"\"detect\" of the GPU time: the unfinished iteration and the time until every rank is "
	"proved gone; in a waterfall: from the first death until it was known.\n",
	run,
	.examples =
		"  moectl report j-7\n"
		"  moectl report j-7 --window 1h\n"
		"  moectl report j-7 --md >issue.md\n"
		"  moectl report --anchor >runs.json; moectl plan recipe.yaml --anchor runs.json\n",
};
