/* list: the jobs. */
#include "cli/list.h"

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/buf.h"

#define REASON_MIN 30 /* fewer letters of it tell nothing */

static const char *const over[] = { "completed", "failed", "cancelled" };

static void iteration_cell(struct table *t, struct json_object *j)
{
	table_cell(t, "%s", text_span(js_int(j, "iteration"), js_int(j, "steps")));
}

void jobs_table(struct table *ret)
{
	static const struct column columns[] = {
		{ "ID", "id" },
		{ "NAME", "name" },
		{ "STATE", "state" },
		{ ">ITERATION", .cell = iteration_cell },
		{ ">LOSS", "loss", CELL_REAL, 4, .less = 1 },
		{ ">TOK/S/GPU", "tokens_per_s_per_gpu", CELL_SI, .less = 2 },
		{ ">MFU", "mfu", CELL_PERCENT, .less = 6 },
		{ ">RANKS", "ranks", CELL_INT, .less = 5 },
		{ ">RESTARTS", "restarts", CELL_INT, .less = 3 },
		{ ">ETA", "eta_s", CELL_SECONDS, .less = 1 },
		{ "USER", "user", .less = 4 },
		{ "REASON", "reason" },
	};

	table_head(ret, columns, ELEMENTSOF(columns));
	ret->last_min = REASON_MIN;
}

static void print_jobs(const struct cli *cli, struct json_object *items)
{
	_cleanup_(table_done) struct table t = { 0 };
	jobs_table(&t);
	for (size_t i = js_len(items); i-- > 0;) /* newest first */
		table_row(&t, js_at(items, i));
	if (!table_print(cli, &t))
		puts("more columns on a wider terminal; `moectl why JOB` tells reasons");
}

/* Those that are over. */
static int print_left_out(struct cli *cli)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get(cli, NULL, &a, "/v1/cluster");
	int64_t n = 0;

	if (r)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(over); i++)
		n += MO_MAX(js_int(js_get(a.doc, "jobs"), over[i]), (int64_t)0);
	if (n > 0)
		printf("%lld finished job%s not shown; `moectl list --all` shows all\n",
		       (long long)n, n == 1 ? " is" : "s are");
	return CLI_OK;
}

/* One more of the query; not what is NULL. */
static void ask(struct mo_buf *query, const char *name, const char *value)
{
	_cleanup_(mo_freep) char *quoted = url_quote(value ? value : "");

	if (value)
		mo_buf_printf(query, "%c%s=%s", query->len ? '&' : '?', name, quoted);
}

static int run(struct cli *cli, int argc, char **argv)
{
	bool all = false, active = false;
	const char *state = NULL, *user = NULL, *label = NULL;
	const struct opt opts[] = { { "all", 'a', OPT_FLAG, &all },
				    { "state", 0, OPT_STR, &state },
				    { "user", 0, OPT_STR, &user },
				    { "label", 0, OPT_STR, &label } };
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), NULL, 0, 0);
	if (r)
		return cli_stop(r);
	active = !state && !all;
	if (active)
		state = JOBS_UNFINISHED;
	_cleanup_(mo_buf_done) struct mo_buf query = { 0 };
	ask(&query, "state", state);
	ask(&query, "user", user);
	ask(&query, "label", label);
	r = client_get_all(cli, NULL, &a, "/v1/jobs%s", query.len ? query.data : "");
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	if (js_len(js_items(a.doc)))
		print_jobs(cli, js_items(a.doc));
	else
		puts(user || label ? "no such jobs"
		     : all         ? "no jobs yet; `moectl submit RECIPE` makes the first"
		     : active      ? "no active jobs"
				   : "no jobs in these states");
	return active && !user && !label ? print_left_out(cli) : CLI_OK;
}

const struct verb verb_list = {
	"list",
	"Look",
	"list [--all] [--state STATE,...] [--user USER] [--label NAME[=VALUE],...]",
	"jobs that are not finished, or all",
	"  --all              finished jobs too\n  --state STATE,...  only these: queued, "
	"starting, running, recovering, stopping, paused, completed, failed, cancelled\n"
	"  --user USER        only those of USER\n"
	"  --label NAME[=VALUE],...  only those whose recipes have these labels\n",
	run,
	.examples = "  moectl list --state queued,running\n"
		    "  moectl list --all --user ada\n"
		    "  moectl list --label team=vision\n",
};
