/* explain env|bind: every variable of a rank with value, reason and source; what each rank is bound to and why. */
#include <string.h>

#include "cli/client.h"
#include "cli/output.h"
#include "cli/value.h"

static void print_env(const struct cli *cli, struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *e = js_at(items, i);
		const char *overrides = js_str(e, "overrides"), *value = js_str(e, "value");
		printf("%s=%s\n    %s  [%s]%s%s\n", paint(cli, "1", text_or(js_str(e, "name"))), value ? value : "", text_or(js_str(e, "reason")), text_or(js_str(e, "source")),
		       overrides ? "  overrides " : "", overrides ? overrides : "");
	}
}

static void read_back_cell(struct table *t, struct json_object *rank)
{
	struct json_object *v = js_get(rank, "bind_verified");
	table_cell(t, "%s", !v ? "not known" : json_object_get_boolean(v) ? "verified" : "differs");
}

static void print_bind(const struct cli *cli, struct json_object *items, int64_t rank)
{
	static const struct column columns[] = {
		{ ">RANK", "rank", CELL_INT }, { "NODE", "node" }, { ">GPU", "gpu", CELL_INT }, { ">NUMA", "numa_node", CELL_INT }, { "CPUS", "cpus" },
		{ "NIC", "nic" }, { "READ BACK", .cell = read_back_cell }, { "NOTE", "bind_note" },
	};
	_cleanup_(table_done) struct table t = { 0 };
	table_head(&t, columns, ELEMENTSOF(columns));
	for (size_t i = 0; i < js_len(items); i++)
		if (rank == MO_NONE || js_int(js_at(items, i), "rank") == rank)
			table_row(&t, js_at(items, i));
	table_print(cli, &t);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[2] = { NULL };
	int64_t rank = MO_NONE;
	const struct opt opts[] = { { "rank", 'r', OPT_INT, &rank, 0, INT32_MAX } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 2, 2);
	if (r)
		return cli_stop(r);
	bool env = !strcmp(args[0], "env");
	if (!env && strcmp(args[0], "bind"))
		return cli_misuse(cli, "%s is neither env nor bind", args[0]);
	if ((r = client_job(cli, args[1], &id)))
		return r;
	if (env && rank == MO_NONE)
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/env", id);
	else if (env)
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/env?rank=%lld", id, (long long)rank);
	else
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/ranks", id);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	if (env)
		print_env(cli, js_items(a.doc));
	else if (js_len(js_items(a.doc)))
		print_bind(cli, js_items(a.doc), rank);
	else
		printf("%s has no ranks yet; `moectl why %s` says what it waits for\n", id, id);
	return CLI_OK;
}

const struct verb verb_explain = {
	"explain", "Understand", "explain env|bind JOB [--rank R]", "each variable with reason and source; each rank's CPUs, GPU and NIC as read back",
	"  --rank R    of this rank (env: default 0)\n", run,
};
