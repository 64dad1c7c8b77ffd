/* metrics: per-iteration samples as a table, or in the formats that others read. */
#include "cli/metrics.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/tfevents.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"

#define NEWEST_MOST 1000 /* that one answer has */
#define LAST_MIN 7       /* columns of an attempt */
#define FOLLOW_MS 2000
#define AGAIN_MS 500

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
				       "attempt",
				       "consumed_samples",
				       "batch_samples" };

static void print_csv(struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++) {
		for (size_t c = 0; c < ELEMENTSOF(columns); c++) {
			struct json_object *v = js_get(js_at(items, i), columns[c]);
			printf("%s%s", c ? "," : "", v ? json_object_get_string(v) : "");
		}
		putchar('\n');
	}
}

static void print_lines(struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++)
		print_json_doc(js_at(items, i));
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

static void print_samples(const struct cli *cli, struct json_object *items, size_t first)
{
	static const struct column shown[] = {
		{ ">ITERATION", "iteration", CELL_INT },
		{ "TIME", .cell = time_cell },
		{ ">LOSS", "loss", CELL_REAL, 4 },
		{ ">GRAD NORM", "grad_norm", CELL_REAL, 3, .less = 2 },
		{ ">LR", .cell = lr_cell, .less = 3 },
		{ ">STEP MS", "step_ms", CELL_REAL, 1 },
		{ ">TOKENS", "tokens", CELL_INT, .less = 7 },
		{ ">TOK/S/GPU", "tokens_per_s_per_gpu", CELL_SI, .less = 1 },
		{ ">TFLOP/S/GPU", "tflops_per_gpu", CELL_REAL, 2, .less = 4 },
		{ ">MFU", "mfu", CELL_PERCENT, .less = 3 },
		{ ">MEM GB", "mem_gb", CELL_REAL, 1, .less = 5 },
		{ ">ATTEMPT", "attempt", CELL_INT, .less = 6 },
	};
	_cleanup_(table_done) struct table t = { 0 };

	table_head(&t, shown, ELEMENTSOF(shown));
	t.last_min = LAST_MIN;
	for (size_t i = first; i < js_len(items); i++)
		table_row(&t, js_at(items, i));
	if (!table_print(cli, &t))
		fprintf(stderr, "(more columns on a wider terminal)\n");
}

/* Iterations between the first and the last of an attempt that have no sample. */
struct gaps {
	int64_t attempt, iteration, n;
	int64_t left_out; /* of the whole job, those of which it is known why */
};

static void find_gaps(struct gaps *g, struct json_object *doc)
{
	struct json_object *items = js_items(doc);

	g->left_out = js_int(doc, "left_out");
	for (size_t i = 0; i < js_len(items); i++) {
		int64_t attempt = js_int(js_at(items, i), "attempt"),
			iteration = js_int(js_at(items, i), "iteration");

		if (attempt == g->attempt)
			g->n += MO_MAX(iteration - g->iteration - 1, (int64_t)0);
		g->attempt = attempt;
		g->iteration = iteration;
	}
}

static void say_gaps(const struct gaps *g)
{
	if (g->left_out > 0)
		fprintf(stderr,
			"(%lld iterations of the job came faster than 1,000 a second for long: "
			"their metrics were left out)\n",
			(long long)g->left_out);
	if (g->n > 0)
		fprintf(stderr,
			"(%lld iterations between these have no metrics: the engine did not print "
			"them, they came too fast, or they are older than what samples_max of the "
			"controller keeps)\n",
			(long long)g->n);
}

enum format { TABLE, CSV, JSONL, TENSORBOARD };

/* 0, or an exit status after its line was printed. */
static int read_format(struct cli *cli, const char *word, bool csv, const char *out,
		       enum format *ret)
{
	static const char *const words[] = { "table", "csv", "jsonl", "tensorboard" };
	int i = word ? mo_enum_parse(words, ELEMENTSOF(words), word) : csv ? CSV : TABLE;

	if (i < 0)
		return cli_misuse_word(cli, word, words, ELEMENTSOF(words));
	if (csv && i != CSV)
		return cli_misuse(cli, "--csv and --format %s exclude each other", word);
	if (i != TABLE && cli->json)
		return cli_misuse(cli, "--%s and --json exclude each other",
				  csv ? "csv" : "format");
	if ((out != NULL) != (i == TENSORBOARD))
		return cli_misuse(cli, i == TENSORBOARD ? "--format tensorboard makes files: name "
							  "their directory with --out"
							: "--out is for --format tensorboard");
	*ret = (enum format)i;
	return CLI_OK;
}

/* The last rows of those from `since` on; rows 0: all. */
static int print_table_of(struct cli *cli, const char *id, const char *path, int64_t since,
			  int64_t rows, struct gaps *gaps)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	bool newest = since == MO_NONE && rows > 0 && rows <= NEWEST_MOST;
	int r = newest ? client_get(cli, id, &a, "%s?last=1&limit=%lld", path, (long long)rows)
		       : client_get_all(cli, id, &a, "%s", path);

	if (r)
		return r;
	struct json_object *items = js_items(a.doc);
	size_t n = js_len(items), first = rows && n > (size_t)rows ? n - (size_t)rows : 0;
	int64_t earlier = newest ? js_int(a.doc, "earlier") : (int64_t)first;

	if (n)
		print_samples(cli, items, first);
	else
		printf("%s has no iterations%s%s\n", id, since == MO_NONE ? "" : " from there on",
		       since == MO_NONE ? " yet" : "");
	if (earlier > 0)
		fprintf(stderr, "(%lld earlier iterations; -n 0 or --csv shows all)\n",
			(long long)earlier);
	find_gaps(gaps, a.doc);
	return CLI_OK;
}

/* All pages in a format, none held longer than it takes to write it; following, the newest sample
 * is kept back until the next one is there, as other ranks may still add to it. */
struct writing {
	struct cli *cli;
	const char *id;
	enum format format;
	struct gaps *gaps;
	struct tfevents files;
	bool keep_newest;
	int64_t attempt, iteration; /* the last that was written; MO_NONE none */
};

static int write_page(void *arg, struct answer *page)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct writing *w = arg;
	struct json_object *items = js_items(page->doc);
	size_t n = js_len(items);
	int r = 0;

	if (w->keep_newest && !js_get(page->doc, "next") && n)
		json_object_array_del_idx(items, --n, 1);
	if (!n)
		return CLI_OK;
	w->attempt = js_int(js_at(items, n - 1), "attempt");
	w->iteration = js_int(js_at(items, n - 1), "iteration");
	find_gaps(w->gaps, page->doc);
	if (w->format == CSV)
		print_csv(items);
	else if (w->format == JSONL)
		print_lines(items);
	else
		r = tfevents_add(&w->files, items, &err);
	fflush(stdout);
	if (r < 0)
		return cli_fail(CLI_FAILED, "metrics: %s; choose a directory that can be written",
				mo_error_text(&err, r));
	return ferror(stdout) ? CLI_FAILED : CLI_OK;
}

/* What came since the last that was written. path: with a query. */
static int write_newer(struct writing *w, const char *path)
{
	_cleanup_(mo_freep) char *last =
		w->attempt == MO_NONE
			? NULL
			: mo_printf("%lld.%lld", (long long)w->attempt, (long long)w->iteration);

	return client_pages(w->cli, w->id, path, last, write_page, w);
}

/* *ret_over: the job has ended; *ret_stopped: somebody interrupted. A controller that is away is
 * waited for, for some time. */
static int look(struct writing *w, bool *ret_over, bool *ret_stopped)
{
	_cleanup_(mo_freep) char *path = mo_printf("/v1/jobs/%s", w->id);
	const struct request q = { .path = path, .timeout_ms = 5000 };
	int64_t since = mo_clock_boot_us();
	bool said = false;

	for (;;) {
		_cleanup_(answer_done) struct answer a = { 0 };
		int r = client_send(w->cli, &q, &a);

		if (r)
			return r;
		if (a.status && a.status < 500) {
			*ret_over = a.status < 300 && js_str(a.doc, "ended_at");
			return client_judge(w->cli, w->id, &a);
		}
		if (mo_clock_boot_us() - since > FOLLOW_AWAY_US)
			return client_judge(w->cli, w->id, &a);
		if (!said)
			fprintf(stderr, "moectl: controller %s: no answer; trying again\n",
				client_url(w->cli));
		said = true;
		if ((*ret_stopped = interrupt_wait(AGAIN_MS)))
			return CLI_OK;
	}
}

static int follow(struct writing *w, const char *path)
{
	bool over = false, stopped = false;
	int r;

	interrupt_catch();
	do {
		r = look(w, &over, &stopped);
		if (r || stopped)
			return r;
		w->keep_newest = !over;
		r = write_newer(w, path);
		if (r == CLI_UNREACHABLE) { /* what is missing comes with the next */
			r = CLI_OK;
			over = false;
		}
	} while (!r && !over && !interrupt_wait(FOLLOW_MS));
	return r;
}

static int write_all(struct writing *w, const char *path, bool follows)
{
	for (size_t c = 0; w->format == CSV && c < ELEMENTSOF(columns); c++)
		printf("%s%s", columns[c], c + 1 < ELEMENTSOF(columns) ? "," : "\n");
	int r = follows ? follow(w, path) : write_newer(w, path);
	if (!r && w->format == TENSORBOARD)
		fprintf(stderr, "moectl: metrics: %s: %zu iterations of %zu attempt%s in %s\n",
			w->id, w->files.n_samples, w->files.n_runs, w->files.n_runs == 1 ? "" : "s",
			w->files.dir);
	return r;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *word = NULL, *out = NULL;
	bool csv = false, follows = false;
	enum format format = TABLE;
	int64_t since = MO_NONE, rows = 20;
	const struct opt opts[] = { { "csv", 0, OPT_FLAG, &csv },
				    { "format", 0, OPT_STR, &word },
				    { "out", 'o', OPT_STR, &out },
				    { "follow", 'f', OPT_FLAG, &follows },
				    { "since", 0, OPT_INT, &since, 0, INT64_MAX },
				    { "rows", 'n', OPT_INT, &rows, 0, 1 << 30 } };
	_cleanup_(mo_freep) char *id = NULL;
	struct gaps gaps = { .attempt = MO_NONE, .left_out = 0 };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);

	if (r)
		return cli_stop(r);
	if ((r = read_format(cli, word, csv, out, &format)))
		return r;
	if (follows && format == TABLE)
		return cli_misuse(cli, "--follow writes csv, jsonl or tensorboard: name it with "
				       "--format; `moectl watch` follows in one line");
	if ((r = client_job(cli, args[0], &id)))
		return r;
	_cleanup_(mo_freep) char *path =
		since == MO_NONE
			? mo_printf("/v1/jobs/%s/metrics", id)
			: mo_printf("/v1/jobs/%s/metrics?since=%lld", id, (long long)since);
	if (cli->json)
		return client_print_all(cli, id, path);
	struct writing w = { .cli = cli,
			     .id = id,
			     .format = format,
			     .gaps = &gaps,
			     .files.dir = out,
			     .attempt = MO_NONE };
	r = format == TABLE ? print_table_of(cli, id, path, since, rows, &gaps)
			    : write_all(&w, path, follows);
	if (!r)
		say_gaps(&gaps);
	return r;
}

const struct verb verb_metrics = {
	"metrics",
	"Look",
	"metrics JOB [--since ITER] [--format csv|jsonl|tensorboard] [--out DIR] [-f] [-n ROWS]",
	"per-iteration loss, step time, tokens/s, TFLOP/s, MFU",
	"  --since ITER      from this iteration on\n"
	"  --format FORMAT   all samples with the names of the JSON members: csv, jsonl (one "
	"object "
	"a line), or tensorboard (files)\n"
	"  --csv             the same as --format csv\n"
	"  -o, --out DIR     where tensorboard's files go: one run for each attempt, written anew\n"
	"  -f, --follow      write on until the job ends, over restarts of it and of the "
	"controller; "
	"the newest iteration comes with the next\n"
	"  -n, --rows ROWS   last ROWS of the table (20; 0 = all)\n",
	run,
	.examples =
		"  moectl metrics j-7 -n 20\n"
		"  moectl metrics j-7 --since 1000 --csv >curve.csv\n"
		"  moectl metrics j-7 --format tensorboard --out runs/j-7; tensorboard --logdir "
		"runs\n"
		"  moectl metrics j-7 -f --format jsonl >run.jsonl   while it trains\n",
};
