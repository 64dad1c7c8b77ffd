/* ranks: where every rank runs, what it is bound to, how far it is. */
#include "cli/client.h"
#include "cli/output.h"
#include "cli/value.h"

static const char *bind_word(struct json_object *rank)
{
	struct json_object *v = js_get(rank, "bind_verified");
	const char *note = js_str(rank, "bind_note");
	if (!v)
		return note ? note : "-";
	return json_object_get_boolean(v) ? "verified" : note ? note : "failed";
}

static void exit_cell(struct table *t, struct json_object *rank)
{
	const char *cause = js_str(rank, "exit.cause");
	int64_t code = js_int(rank, "exit.code"), sig = js_int(rank, "exit.signal");
	if (sig != MO_NONE)
		table_cell(t, "signal %s %s", text_int(sig), cause ? cause : "");
	else if (code != MO_NONE || cause)
		table_cell(t, "%s %s", text_int(code), cause ? cause : "");
	else
		table_cell(t, "-");
}

static void print_ranks(const struct cli *cli, struct json_object *items)
{
	static const char *const titles[] = { ">RANK", "NODE", ">LOCAL", ">PID", "STATE", "CPUS", ">NUMA", ">GPU", "NIC", "BIND", ">ITER", ">STEP MS", "TP PP EP CP DP", "EXIT" };
	_cleanup_(table_done) struct table t = { 0 };
	table_head(&t, titles, ELEMENTSOF(titles));
	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *k = js_at(items, i);
		table_cell(&t, "%s", text_int(js_int(k, "rank")));
		table_cell(&t, "%s", text_or(js_str(k, "node")));
		table_cell(&t, "%s", text_int(js_int(k, "local_rank")));
		table_cell(&t, "%s", text_int(js_int(k, "pid")));
		table_cell(&t, "%s", text_or(js_str(k, "state")));
		table_cell(&t, "%s", text_or(js_str(k, "cpus")));
		table_cell(&t, "%s", text_int(js_int(k, "numa_node")));
		table_cell(&t, "%s", text_int(js_int(k, "gpu")));
		table_cell(&t, "%s", text_or(js_str(k, "nic")));
		table_cell(&t, "%s", bind_word(k));
		table_cell(&t, "%s", text_int(js_int(k, "iteration")));
		table_cell(&t, "%s", text_real(js_real(k, "step_ms"), 1));
		if (js_get(k, "coords"))
			table_cell(&t, "%s %s %s %s %s", text_int(js_int(k, "coords.tp")), text_int(js_int(k, "coords.pp")), text_int(js_int(k, "coords.ep")),
				   text_int(js_int(k, "coords.cp")), text_int(js_int(k, "coords.dp")));
		else
			table_cell(&t, "-");
		exit_cell(&t, k);
	}
	table_print(cli, &t);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	if (r)
		return cli_stop(r);
	if ((r = client_job(cli, args[0], &id)) || (r = client_get_all(cli, id, &a, "/v1/jobs/%s/ranks", id)))
		return r;
	if (cli->json)
		return print_answer(&a);
	if (js_len(js_items(a.doc)))
		print_ranks(cli, js_items(a.doc));
	else
		printf("%s has no ranks yet; `moectl why %s` says what it waits for\n", id, id);
	return CLI_OK;
}

const struct verb verb_ranks = { "ranks", "Look", "ranks JOB", "every rank: node, pid, CPUs, GPU, binding as read back, iteration", NULL, run };
