/* report: where the GPU time of a job went, and what happened to it. */
#include "cli/report.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

static void print_ledger(struct json_object *report)
{
	static const char *const parts[] = { "productive", "queue",  "image",     "launch",
					     "init",       "load",   "recompute", "save",
					     "hang",       "detect", "drain",     "idle" };
	double total = js_real(report, "gpu_seconds.total");
	printf("GPU time     %s GPU-s\n", text_real(total, 1));
	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("gpu_seconds.%s", parts[i]);
		double v = js_real(report, path);
		if (v == MO_NONE_F || (v == 0 && strcmp(parts[i], "productive")))
			continue;
		int bar = total > 0 ? (int)(v / total * 40 + 0.5) : 0;
		printf("  %-11s%12s  %6.2f %%%s", parts[i], text_real(v, 1),
		       total > 0 ? v / total * 100 : 0.0, bar ? "  " : "");
		for (int k = 0; k < bar; k++)
			putchar('#');
		putchar('\n');
		if (!strcmp(parts[i], "launch") && js_real(report, "prepare.gpu_s") > 0)
			printf("    prepare%14s  %6.2f %%  engine.prepare: %s\n",
			       text_real(js_real(report, "prepare.gpu_s"), 1),
			       total > 0 ? js_real(report, "prepare.gpu_s") / total * 100 : 0.0,
			       text_or(js_str(report, "prepare.text")));
	}
}

/* unknown: iterations were lost, and how long it took to do them again is not known, or not yet. */
static void print_waterfall(struct json_object *w, bool unknown)
{
	static const char *const phases[] = { "detect", "stop", "place", "image",
					      "launch", "init", "load",  "recompute" };
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
		puts("|");
		at += v;
	}
	if (unknown && total > 0)
		printf("      %-10s %9s\n", "recompute", "not known");
	if (total > 0)
		printf("      %-10s %9s\n", "total", text_seconds(total / 1000));
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
		print_waterfall(js_get(k, "waterfall_ms"),
				js_int(k, "lost_iterations") > 0 &&
					js_real(k, "waterfall_ms.recompute") == MO_NONE_F);
	}
}

static void print_report(const struct cli *cli, const char *id, struct json_object *r)
{
	printf("%s  %s wall time, %s restart%s, ETTR %s, goodput %s, MFU %s\n\n",
	       paint(cli, "1", id), text_seconds(js_real(r, "wall_s")),
	       text_int(js_int(r, "restarts")), js_int(r, "restarts") == 1 ? "" : "s",
	       text_percent(js_real(r, "ettr")), text_percent(js_real(r, "goodput")),
	       text_percent(js_real(r, "mfu")));
	print_ledger(r);
	print_incidents(cli, js_get(r, "incidents"));
	if (!js_len(js_get(r, "incidents")))
		puts("\nno incidents");
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool anchor = false;
	const struct opt opts[] = { { "anchor", 0, OPT_FLAG, &anchor } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);
	if (!r && !args[0] && !anchor)
		r = cli_misuse(cli, "JOB is missing; only --anchor does without");
	if (r)
		return cli_stop(r);
	if (!args[0])
		return (r = client_get(cli, NULL, &a, "/v1/anchors")) ? r : print_answer(&a);
	if ((r = client_job(cli, args[0], &id)) ||
	    (r = client_get(cli, id, &a, "/v1/jobs/%s/report%s", id, anchor ? "?anchor=1" : "")))
		return r;
	if (cli->json || anchor)
		return print_answer(&a);
	print_report(cli, id, a.doc);
	return CLI_OK;
}

const struct verb verb_report = {
	"report",
	"Look",
	"report JOB [--anchor] | --anchor",
	"GPU time by category, ETTR, incidents and what each restart cost",
	"  --anchor   the measured step time and memory in the form that `moectl plan --anchor` "
	"reads; without JOB of all runs that calibrate the controller's plans\n"
	"\"detect\" of the GPU time: the unfinished iteration and the time until every rank is "
	"proved gone; in a waterfall: from the first death until it was known.\n",
	run,
};
