/* ranks: where every rank runs, what it is bound to, how far it is. */
#include "cli/ranks.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/ranks_heat.h"
#include "cli/ranks_meant.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"

#define SLOWER 1.1 /* than it was itself: it is shown from there on */

static void step_cell(struct table *t, struct json_object *rank)
{
	double times = js_real(rank, "own_times");
	const char *ms = text_real(js_real(rank, "step_ms"), 1);

	if (times == MO_NONE_F || times < SLOWER)
		table_cell(t, "%s", ms);
	else
		table_cell(t, "%s, %s x its best", ms, text_real(times, 2));
}

static void bind_cell(struct table *t, struct json_object *rank)
{
	struct json_object *v = js_get(rank, "bind_verified");
	table_cell(t, "%s", v ? json_object_get_boolean(v) ? "verified" : "failed" : "-");
}

static void gpu_cell(struct table *t, struct json_object *rank)
{
	const char *note = js_str(rank, "gpu_note");

	table_cell(t, "%s%s%s", text_int(js_int(rank, "gpu")), note ? " " : "", note ? note : "");
}

void ranks_coords_cell(struct table *t, struct json_object *rank)
{
	struct json_object *c = js_get(rank, "coords");
	if (c)
		table_cell(t, "%s %s %s %s %s", text_int(js_int(c, "tp")),
			   text_int(js_int(c, "pp")), text_int(js_int(c, "ep")),
			   text_int(js_int(c, "cp")), text_int(js_int(c, "dp")));
	else
		table_cell(t, "-");
}

static void exit_cell(struct table *t, struct json_object *rank)
{
	const char *cause = js_str(rank, "exit.cause");
	int64_t code = js_int(rank, "exit.code"), sig = js_int(rank, "exit.signal");
	bool more = cause && strcmp(cause, "exited");
	if (sig != MO_NONE)
		table_cell(t, "signal %s%s%s", text_int(sig), more ? " " : "", more ? cause : "");
	else if (code != MO_NONE || cause)
		table_cell(t, "%s%s%s", text_int(code), more ? " " : "", more ? cause : "");
	else
		table_cell(t, "-");
}

static void print_ranks(const struct cli *cli, struct json_object *items)
{
	static const struct column columns[] = {
		{ ">RANK", "rank", CELL_INT },
		{ "NODE", "node" },
		{ ">PID", "pid", CELL_INT, .less = 4 },
		{ "STATE", "state" },
		{ "DOING", "doing" },
		{ ">ITER", "iteration", CELL_INT },
		{ ">STEP MS", .cell = step_cell, .less = 1 },
		{ "BIND", .cell = bind_cell, .less = 3 },
		{ "CPUS", "cpus", .less = 7 },
		{ ">NUMA", "numa_node", CELL_INT, .less = 6 },
		{ "GPU", .cell = gpu_cell },
		{ "NIC", "nic", .less = 6 },
		{ ">LOCAL", "local_rank", CELL_INT, .less = 8 },
		{ "TP PP EP CP DP", .cell = ranks_coords_cell, .less = 5 },
		{ "EXIT", .cell = exit_cell },
		{ "NOTE", "bind_note", .less = 2 },
	};
	print_table(cli, columns, ELEMENTSOF(columns), items);
}

static void leave_only(struct json_object *doc, const struct mo_idset *ranks)
{
	struct json_object *some = json_object_new_array();

	for (size_t i = 0; i < js_len(js_items(doc)); i++) {
		struct json_object *rank = js_at(js_items(doc), i);

		if (mo_idset_has(ranks, (size_t)js_int(rank, "rank")))
			json_object_array_add(some, json_object_get(rank));
	}
	json_object_object_add(doc, "items", some);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[2] = { NULL }, *word = NULL;
	bool heat = false;
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_idset_done) struct mo_idset ranks = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	const struct opt opts[] = { { "rank", 'r', OPT_STR, &word },
				    { "heat", 0, OPT_FLAG, &heat } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 2);
	if (r)
		return cli_stop(r);
	if (args[1] && !heat)
		return cli_misuse(cli,
				  "%.40s: one job is enough; a value of its ranks is drawn "
				  "with --heat",
				  args[1]);
	if (heat && word)
		return cli_misuse(cli, "--heat draws all ranks; leave out --rank");
	if ((r = client_job(cli, args[0], &id)))
		return r;
	if (heat)
		return ranks_heat(cli, id, args[1]);
	if ((word && (r = ranks_meant(cli, id, word, &ranks))) ||
	    (r = client_get_all(cli, id, &a, "/v1/jobs/%s/ranks", id)))
		return r;
	if (word)
		leave_only(a.doc, &ranks);
	if (cli->json && word) {
		print_json_doc(a.doc);
		return CLI_OK;
	}
	if (cli->json)
		return print_answer(&a);
	if (js_len(js_items(a.doc)))
		print_ranks(cli, js_items(a.doc));
	else
		printf("%s has no ranks yet; `moectl why %s` says what it waits for\n", id, id);
	return CLI_OK;
}

const struct verb verb_ranks = {
	"ranks",
	"Look",
	"ranks JOB [--rank RANKS] [--heat [METRIC]]",
	"every rank: node, pid, what it does, CPUs, GPU, binding as read back, iteration",
	"  -r, --rank RANKS   these only: 3, or 0-7,12, or by their place: pp=3,tp=0\n"
	"  --heat             all as a picture: a row of characters for each pipeline stage, and "
	"the ranks that stand out.\n"
	"                     METRIC is doing (default) or state, in letters, or how far a rank is "
	"from its stage in\n"
	"                     step_ms, iteration, delay_pct, wanted_pct, busy_pct, mem_pct, "
	"power_w\n",
	run,
	.examples = "  moectl ranks j-7\n"
		    "  moectl ranks j-7 --rank pp=3,dp=0\n"
		    "  moectl ranks j-7 --heat step_ms\n",
};
