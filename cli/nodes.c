/* nodes, node, drain, undrain, fence: the machines. */
#include <string.h>

#include "cli/client.h"
#include "cli/output.h"
#include "cli/value.h"
#include "lib/wire/json.h"

static void jobs_cell(struct table *t, struct json_object *node)
{
	struct json_object *jobs = js_get(node, "jobs");
	struct mo_buf b = { 0 };
	for (size_t i = 0; i < js_len(jobs); i++)
		mo_buf_printf(&b, "%s%s", i ? "," : "", json_object_get_string(js_at(jobs, i)));
	table_cell(t, "%s", b.len ? b.data : "-");
	mo_buf_done(&b);
}

static double age_s(struct json_object *node)
{
	int64_t ms = js_int(node, "heartbeat_age_ms");
	return ms == MO_NONE ? MO_NONE_F : (double)ms / 1000;
}

static void heard_cell(struct table *t, struct json_object *node) { table_cell(t, "%s", text_seconds(age_s(node))); }

static int run_nodes(struct cli *cli, int argc, char **argv)
{
	static const struct column columns[] = {
		{ "NODE", "name" }, { "STATE", "state" }, { ">GPUS", "gpus", CELL_INT }, { ">CPUS", "cpus", CELL_INT }, { ">NUMA", "numa_nodes", CELL_INT },
		{ "JOBS", .cell = jobs_cell }, { ">HEARD", .cell = heard_cell }, { "REASON", "reason" },
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = cli_options(cli, argc, argv, NULL, 0, NULL, 0, 0);
	if (r)
		return cli_stop(r);
	if ((r = client_get_all(cli, NULL, &a, "/v1/nodes")))
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc);
	if (js_len(items))
		print_table(cli, columns, ELEMENTSOF(columns), items);
	else
		puts("no nodes yet; start moe-agent on a node with this controller's address and an agent token");
	return CLI_OK;
}

/* The tree that the controller draws. Without one (a controller of an older version) the rest of the node is still told. */
static void print_tree(struct cli *cli, const char *quoted_name)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/v1/nodes/%s/topology?format=text&width=%d", quoted_name, MO_MIN(MO_MAX(cli->width ? cli->width : 100, 40), 400));
	if (client_send(cli, &(struct request){ .path = path }, &a) == 0 && a.status == 200 && a.body.data)
		printf("\n%s", a.body.data);
}

static void print_node(const struct cli *cli, struct json_object *n)
{
	struct json_object *checks = js_get(n, "checks"), *jobs = js_get(n, "jobs");
	printf("%s  %s  heard %s ago\n", paint(cli, "1", text_or(js_str(n, "name"))), paint_state(cli, js_str(n, "state")), text_seconds(age_s(n)));
	if (js_str(n, "reason"))
		printf("%-10s %s\n", "reason", js_str(n, "reason"));
	for (size_t i = 0; i < js_len(jobs); i++)
		printf("%-10s %s\n", "job", json_object_get_string(js_at(jobs, i)));
	for (size_t i = 0; i < js_len(checks); i++)
		printf("%-10s %s: %s  %s\n", "check", text_or(js_str(js_at(checks, i), "check")), text_or(js_str(js_at(checks, i), "state")), text_or(js_str(js_at(checks, i), "text")));
}

static int run_node(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *name = NULL;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	if (r)
		return cli_stop(r);
	name = url_quote(args[0]);
	if ((r = client_get(cli, args[0], &a, "/v1/nodes/%s", name)))
		return r;
	if (cli->json)
		return print_answer(&a);
	print_node(cli, a.doc);
	print_tree(cli, name);
	return CLI_OK;
}

static int act(struct cli *cli, const char *node, const char *verb, const char *body, const char *said)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *name = url_quote(node);
	int r = client_call(cli, "POST", node, body, &a, "/v1/nodes/%s/%s", name, verb);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	printf("%s %s: %s\n", node, paint_state(cli, js_str(a.doc, "state")), said);
	return CLI_OK;
}

static int run_drain(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *reason = NULL, *when = "idle";
	const struct opt opts[] = { { "reason", 0, OPT_STR, &reason }, { "when", 0, OPT_STR, &when } };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if (!reason || !*reason)
		return cli_misuse(cli, "--reason is missing; say why, others will read it");
	if (strcmp(when, "idle") && strcmp(when, "checkpoint") && strcmp(when, "now"))
		return cli_misuse(cli, "--when %s is none of idle, checkpoint, now", when);
	mo_buf_str(&body, "{\"reason\":");
	wire_string(reason, &body);
	mo_buf_printf(&body, ",\"when\":\"%s\"}", when);
	return act(cli, args[0], "drain", body.data, "gets no new work; `moectl undrain` takes it back");
}

static int run_undrain(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	return r ? cli_stop(r) : act(cli, args[0], "undrain", "{}", "takes work again");
}

static int run_fence(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool confirmed = false;
	const struct opt opts[] = { { "confirmed", 0, OPT_FLAG, &confirmed } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if (!confirmed)
		return cli_misuse(cli, "--confirmed is missing: it states that %s is powered off; its ranks count as dead and its jobs start elsewhere", args[0]);
	return act(cli, args[0], "fence", "{\"confirmed\":true}", "its ranks count as dead");
}

const struct verb verb_nodes = { "nodes", "Nodes", "nodes", "all nodes: state, GPUs, jobs", NULL, run_nodes };
const struct verb verb_node = { "node", "Nodes", "node NAME", "one node, drawn: NUMA nodes, GPUs, NICs, jobs, what is odd", NULL, run_node };
const struct verb verb_drain = {
	"drain", "Nodes", "drain NODE --reason TEXT [--when idle|checkpoint|now]", "give a node no new work, and take its jobs away",
	"  --reason TEXT                why; shown to everyone\n  --when idle|checkpoint|now   jobs there end by themselves (default), move after their next checkpoint, or stop now\n", run_drain,
};
const struct verb verb_undrain = { "undrain", "Nodes", "undrain NODE", "give a drained node work again", NULL, run_undrain };
const struct verb verb_fence = {
	"fence", "Nodes", "fence NODE --confirmed", "state that a silent node is off, so that its jobs may start elsewhere",
	"Only when the node is powered off: two attempts of one job writing the same checkpoint destroy it.\n", run_fence,
};
