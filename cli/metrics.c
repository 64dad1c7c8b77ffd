/* metrics: per-iteration samples as a table, CSV or JSON. */
#include "cli/metrics.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/model/limits.h"

static const char *const columns[] = { "iteration",
				       "time",
				       "loss",
				       "grad_norm",
				       "lr",
				       "step_ms",
				       "tokens",
				       "tokens_per_s_per_gpu",
				       "tflops_per_gpu",
				       "mfu",
				       "mem_gb",
				       "skipped",
				       "nan",
				       "phase",
				       "attempt" };

static void print_csv(struct json_object *items)
{
	for (size_t c = 0; c < ELEMENTSOF(columns); c++)
		printf("%s%s", c ? "," : "", columns[c]);
	putchar('\n');
	for (size_t i = 0; i < js_len(items); i++) {
		for (size_t c = 0; c < ELEMENTSOF(columns); c++) {
			struct json_object *v = js_get(js_at(items, i), columns[c]);
			printf("%s%s", c ? "," : "", v ? json_object_get_string(v) : "");
		}
		putchar('\n');
	}
}

static void time_cell(struct table *t, struct json_object *sample)
{
	table_cell(t, "%s", text_clock(js_str(sample, "time")));
}

static void lr_cell(struct table *t, struct json_object *sample)
{
	double lr = js_real(sample, "lr");
	if (lr == MO_NONE_F)
		table_cell(t, "-");
	else
		table_cell(t, "%.2e", lr);
}

static void print_samples(const struct cli *cli, struct json_object *items, int64_t rows)
{
	static const struct column shown[] = {
		{ ">ITERATION", "iteration", CELL_INT },
		{ "TIME", .cell = time_cell },
		{ ">LOSS", "loss", CELL_REAL, 4 },
		{ ">GRAD NORM", "grad_norm", CELL_REAL, 3 },
		{ ">LR", .cell = lr_cell },
		{ ">STEP MS", "step_ms", CELL_REAL, 1 },
		{ ">TOKENS", "tokens", CELL_INT },
		{ ">TOK/S/GPU", "tokens_per_s_per_gpu", CELL_SI },
		{ ">TFLOP/S/GPU", "tflops_per_gpu", CELL_REAL, 2 },
		{ ">MFU", "mfu", CELL_PERCENT },
		{ ">MEM GB", "mem_gb", CELL_REAL, 1 },
		{ ">ATTEMPT", "attempt", CELL_INT },
	};
	_cleanup_(table_done) struct table t = { 0 };
	size_t n = js_len(items), first = rows && n > (size_t)rows ? n - (size_t)rows : 0;
	table_head(&t, shown, ELEMENTSOF(shown));
	for (size_t i = first; i < n; i++)
		table_row(&t, js_at(items, i));
	table_print(cli, &t);
	if (first)
		fprintf(stderr, "(%zu earlier iterations; -n 0 or --csv shows all)\n", first);
}

/* Iterations between the first and the last of an attempt that have no sample; left_out: of the
 * whole job, those of which it is known why. */
static void say_gaps(struct json_object *items, int64_t left_out)
{
	int64_t gaps = 0;

	if (left_out > 0)
		fprintf(stderr,
			"(%lld iterations of the job came faster than 1,000 a second for long: "
			"their metrics were left out)\n",
			(long long)left_out);

	for (size_t i = 1; i < js_len(items); i++) {
		struct json_object *a = js_at(items, i - 1), *b = js_at(items, i);
		if (js_int(a, "attempt") == js_int(b, "attempt"))
			gaps += MO_MAX(js_int(b, "iteration") - js_int(a, "iteration") - 1,
				       (int64_t)0);
	}
	if (gaps > 0)
		fprintf(stderr,
			"(%lld iterations between these have no metrics: the engine did not print "
			"them, they came too fast, or they are older than %d others)\n",
			(long long)gaps, MO_SAMPLES_MAX / 2);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool csv = false;
	int64_t since = MO_NONE, rows = 20;
	const struct opt opts[] = { { "csv", 0, OPT_FLAG, &csv },
				    { "since", 0, OPT_INT, &since, 0, INT64_MAX },
				    { "rows", 'n', OPT_INT, &rows, 0, 1 << 30 } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if (csv && cli->json)
		return cli_misuse(cli, "--csv and --json exclude each other");
	if ((r = client_job(cli, args[0], &id)))
		return r;
	if (since == MO_NONE)
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/metrics", id);
	else
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/metrics?since=%lld", id,
				   (long long)since);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	if (csv)
		print_csv(js_items(a.doc));
	else if (js_len(js_items(a.doc)))
		print_samples(cli, js_items(a.doc), rows);
	else
		printf("%s has no iterations%s%s\n", id, since == MO_NONE ? "" : " from there on",
		       since == MO_NONE ? " yet" : "");
	say_gaps(js_items(a.doc), js_int(a.doc, "left_out"));
	return CLI_OK;
}

const struct verb verb_metrics = {
	"metrics",
	"Look",
	"metrics JOB [--since ITER] [--csv] [-n ROWS]",
	"per-iteration loss, step time, tokens/s, TFLOP/s, MFU",
	"  --since ITER   from this iteration on\n  --csv          all samples as CSV with the "
	"names of the JSON members\n  -n ROWS        last ROWS of the table (20; 0 = all)\n",
	run,
	.examples = "  moectl metrics j-7 -n 20\n"
		    "  moectl metrics j-7 --since 1000 --csv >curve.csv\n",
};
