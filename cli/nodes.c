/* nodes, node, drain, undrain, fence: the machines. */
#include "cli/nodes.h"

#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"

static void jobs_cell(struct table *t, struct json_object *node)
{
	struct json_object *jobs = js_get(node, "jobs");
	struct mo_buf b = { 0 };
	for (size_t i = 0; i < js_len(jobs); i++)
		mo_buf_printf(&b, "%s%s", i ? "," : "", json_object_get_string(js_at(jobs, i)));
	if (js_str(node, "spare_of"))
		mo_buf_printf(&b, "spare of %s", js_str(node, "spare_of"));
	table_cell(t, "%s", b.len ? b.data : "-");
	mo_buf_done(&b);
}

static double age_s(struct json_object *node)
{
	int64_t ms = js_int(node, "heartbeat_age_ms");
	return ms == MO_NONE ? MO_NONE_F : (double)ms / 1000;
}

static void heard_cell(struct table *t, struct json_object *node)
{
	table_cell(t, "%s", text_seconds(age_s(node)));
}

static void print_names(struct json_object *odd)
{
	struct json_object *names = js_get(odd, "nodes");
	int64_t count = js_int(odd, "count");

	for (size_t i = 0; i < js_len(names); i++)
		printf("%s%s", i ? " " : "", json_object_get_string(js_at(names, i)));
	if (count > (int64_t)js_len(names))
		printf(" and %lld more", (long long)count - (int64_t)js_len(names));
}

static void print_stack_drift_group(const struct cli *cli, struct json_object *g)
{
	struct json_object *keys = js_get(g, "keys");
	int64_t nodes = js_int(g, "nodes");

	printf("%s  %lld node%s, %lld of %lld keys equal\n",
	       paint(cli, "1", js_str(g, "gpu") ? js_str(g, "gpu") : "no GPUs"), (long long)nodes,
	       nodes == 1 ? "" : "s", (long long)js_int(g, "same"),
	       (long long)js_int(g, "same") + (long long)js_len(keys));
	for (size_t i = 0; i < js_len(keys); i++) {
		struct json_object *key = js_at(keys, i), *odd = js_get(key, "odd");

		printf("  %s: %lld x %s\n", text_or(js_str(key, "key")),
		       (long long)js_int(key, "count"),
		       js_str(key, "value") ? js_str(key, "value") : "none");
		for (size_t k = 0; k < js_len(odd); k++) {
			printf("    %lld x %s: ", (long long)js_int(js_at(odd, k), "count"),
			       js_str(js_at(odd, k), "value") ? js_str(js_at(odd, k), "value")
							      : "none");
			print_names(js_at(odd, k));
			puts("");
		}
		if (js_int(key, "values") - 1 > (int64_t)js_len(odd))
			printf("    and %lld more values\n",
			       (long long)js_int(key, "values") - 1 - (long long)js_len(odd));
	}
}

static int run_stack_drift(struct cli *cli)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	struct json_object *groups;
	int r = client_get(cli, NULL, &a, "/v1/drift");

	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	groups = js_get(a.doc, "groups");
	for (size_t i = 0; i < js_len(groups); i++)
		print_stack_drift_group(cli, js_at(groups, i));
	if (js_int(a.doc, "untold") > 0)
		printf("%lld node%s reported no fingerprint\n", (long long)js_int(a.doc, "untold"),
		       js_int(a.doc, "untold") == 1 ? "" : "s");
	if (!js_len(groups) && js_int(a.doc, "untold") <= 0)
		puts("no nodes yet");
	return CLI_OK;
}

#define REFUSALS_SHOWN 10
#define REASON_MIN 12 /* fewer letters of it tell nothing */

/* A node that is up and gets nothing all the same looks like any other in the table. */
static void print_refusals(struct json_object *items)
{
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *n = js_at(items, i);

		if (!js_str(n, "refuses") || strcmp(text_or(js_str(n, "state")), "up") != 0)
			continue;
		if (shown++ >= REFUSALS_SHOWN)
			more++;
		else
			printf("%s gets no new work: %s; %s\n", js_str(n, "name"),
			       js_str(n, "refuses"), text_or(js_str(n, "next")));
	}
	if (more)
		printf("and %zu more: `moectl why NODE` says why, and what to do\n", more);
}

void nodes_table(struct json_object *items, struct table *ret)
{
	static const struct column columns[] = {
		{ "NODE", "name" },
		{ "STATE", "state" },
		{ ">GPUS", "gpus", CELL_INT, .less = 2 },
		{ ">CPUS", "cpus", CELL_INT, .less = 6 },
		{ ">NUMA", "numa_nodes", CELL_INT, .less = 6 },
		{ "HEALTH", "health" },
		{ ">FOUND", "findings", CELL_INT, .less = 3 },
		{ ">LEMON", "lemon_score", CELL_REAL, 1, .less = 5 },
		{ "JOBS", .cell = jobs_cell, .less = 1 },
		{ ">HEARD", .cell = heard_cell, .less = 4 },
		{ "REASON", "reason" },
	};

	table_head(ret, columns, ELEMENTSOF(columns));
	ret->last_min = REASON_MIN;
	for (size_t i = 0; i < js_len(items); i++)
		table_row(ret, js_at(items, i));
}

static int run_nodes(struct cli *cli, int argc, char **argv)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(table_done) struct table t = { 0 };
	bool drift = false;
	const struct opt opts[] = { { "drift", 0, OPT_FLAG, &drift } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), NULL, 0, 0);
	if (r)
		return cli_stop(r);
	if (drift)
		return run_stack_drift(cli);
	if ((r = client_get_all(cli, NULL, &a, "/v1/nodes")))
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc);
	if (js_len(items)) {
		nodes_table(items, &t);
		if (!table_print(cli, &t))
			puts("more columns on a wider terminal");
		print_refusals(items);
	} else
		puts("no nodes yet; start moe-agent on a node with this controller's address and "
		     "an agent token");
	return CLI_OK;
}

/* The tree that the controller draws. Without one (a controller of an older version) the rest of
 * the node is still shown. */
static void print_tree(struct cli *cli, const char *quoted_name)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *path =
		mo_printf("/v1/nodes/%s/topology?format=text&width=%d", quoted_name,
			  MO_MIN(MO_MAX(cli->width ? cli->width : 100, 40), 400));
	if (client_send(cli, &(struct request){ .path = path }, &a) == 0 && a.status == 200 &&
	    a.body.data) {
		_cleanup_(mo_freep) char *tree = visible(a.body.data);
		printf("\n%s", tree);
	}
}

/* The worst first. */
#define CHECK_RANKS 3
static int check_rank(struct json_object *c)
{
	static const char *const states[CHECK_RANKS] = { "crit", "warn", "unknown" };
	int rank = js_str(c, "state") ? mo_enum_parse(states, CHECK_RANKS, js_str(c, "state")) : -1;

	return rank < 0 ? CHECK_RANKS : rank;
}

static void print_check(const struct cli *cli, struct json_object *c)
{
	struct json_object *lines = js_get(c, "evidence");

	printf("%-10s %s%s%s: %s  %s", "check", text_or(js_str(c, "check")),
	       js_str(c, "object") ? " " : "", js_str(c, "object") ? js_str(c, "object") : "",
	       paint_state(cli, text_or(js_str(c, "state"))), text_or(js_str(c, "text")));
	printf("%s%.19s\n", js_str(c, "since") ? "  since " : "",
	       js_str(c, "since") ? js_str(c, "since") : "");
	for (size_t i = 0; i < js_len(lines); i++)
		printf("%-10s   %s\n", "", json_object_get_string(js_at(lines, i)));
	if (json_object_get_boolean(js_get(c, "known")))
		printf("%-10s   known to an operator (moectl ack): it keeps no job away\n", "");
	if (json_object_get_boolean(js_get(c, "held")))
		printf("%-10s   the node is new and this check never met such hardware: it cordons "
		       "nothing and keeps no job away\n",
		       "");
	if (js_str(c, "next"))
		printf("%-10s   do: %s\n", "", js_str(c, "next"));
}

static void print_sensors(struct json_object *g)
{
	double vram = js_real(g, "vram_used_bytes");

	printf("%-10s %lld: %s C, memory %s C, %s W, %s MHz, busy %s %%, memory used %s\n", "gpu",
	       (long long)js_int(g, "slot"), text_real(js_real(g, "temp_c"), 0),
	       text_real(js_real(g, "mem_temp_c"), 0), text_real(js_real(g, "power_w"), 0),
	       text_real(js_real(g, "clock_mhz"), 0), text_real(js_real(g, "busy_pct"), 0),
	       text_bytes(vram == MO_NONE_F ? MO_NONE : (int64_t)vram));
}

static void print_failures(struct json_object *n)
{
	struct json_object *failures = js_get(n, "failures");

	if (js_real(n, "lemon_score") == MO_NONE_F || !js_len(failures))
		return;
	printf("%-10s %s: failures that began here, each halved after 7 days\n", "lemon",
	       text_real(js_real(n, "lemon_score"), 2));
	for (size_t i = 0; i < js_len(failures); i++) {
		struct json_object *f = js_at(failures, i);
		printf("%-10s   %.19s %s attempt %lld: %s, %s, counts %s\n", "",
		       text_or(js_str(f, "time")), text_or(js_str(f, "job")),
		       (long long)js_int(f, "attempt"), text_or(js_str(f, "class")),
		       text_or(js_str(f, "cause")), text_real(js_real(f, "weight"), 1));
	}
}

static void print_nic(struct json_object *n)
{
	static const struct {
		const char *key, *words;
	} counts[] = {
		{ "link_downed", "link went down" },     { "carrier_down", "carrier lost" },
		{ "symbol_error", "symbol errors" },     { "link_error_recovery", "recoveries" },
		{ "rcv_errors", "receive errors" },      { "out_of_sequence", "out of sequence" },
		{ "local_ack_timeout", "late answers" },
	};

	printf("%-10s %s: %s, %s Gb/s", "nic", text_or(js_str(n, "name")),
	       text_or(js_str(n, "state")), text_real(js_real(n, "rate_gbps"), 0));
	for (size_t i = 0; i < ELEMENTSOF(counts); i++)
		if (js_int(n, counts[i].key) != MO_NONE)
			printf(", %s %lld", counts[i].words, (long long)js_int(n, counts[i].key));
	puts("");
}

static void print_node(const struct cli *cli, struct json_object *n)
{
	struct json_object *checks = js_get(n, "checks"), *jobs = js_get(n, "jobs"),
			   *sensors = js_get(n, "sensors"), *nics = js_get(n, "nic_sensors");
	printf("%s  %s  heard %s ago\n", paint(cli, "1", text_or(js_str(n, "name"))),
	       paint_state(cli, js_str(n, "state")), text_seconds(age_s(n)));
	if (js_str(n, "reason"))
		printf("%-10s %s\n", "reason", js_str(n, "reason"));
	if (js_str(n, "learn_until"))
		printf("%-10s new until %.19s (health.learn): what unproven checks find is only "
		       "reported\n",
		       "learning", js_str(n, "learn_until"));
	if (js_str(n, "would_next"))
		printf("%-10s %s\n", "do", js_str(n, "would_next"));
	if (js_str(n, "refuses"))
		printf("%-10s %s\n%-10s %s\n", "no work", js_str(n, "refuses"), "do",
		       text_or(js_str(n, "next")));
	for (size_t i = 0; i < js_len(jobs); i++)
		printf("%-10s %s\n", "job", json_object_get_string(js_at(jobs, i)));
	for (int rank = 0; rank <= CHECK_RANKS; rank++)
		for (size_t i = 0; i < js_len(checks); i++)
			if (check_rank(js_at(checks, i)) == rank)
				print_check(cli, js_at(checks, i));
	if (js_int(n, "checks_ok") >= 0)
		printf("%-10s %lld checks are ok%s\n", "health", (long long)js_int(n, "checks_ok"),
		       json_object_get_boolean(js_get(n, "preflight_done"))
			       ? ""
			       : "; preflight is not done yet");
	for (size_t i = 0; i < js_len(sensors); i++)
		print_sensors(js_at(sensors, i));
	for (size_t i = 0; i < js_len(nics); i++)
		print_nic(js_at(nics, i));
	print_failures(n);
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

const struct verb verb_nodes = {
	"nodes",
	"Nodes",
	"nodes [--drift]",
	"all nodes: state, health, GPUs, jobs",
	"  --drift   what of kernel, drivers, firmware and settings differs among nodes with GPUs "
	"of one model\n",
	run_nodes,
	.examples = "  moectl nodes\n"
		    "  moectl nodes --drift\n",
};
const struct verb verb_node = {
	"node",
	"Nodes",
	"node NODE",
	"one node, drawn: NUMA nodes, GPUs, NICs, jobs, what is odd",
	NULL,
	run_node,
	.examples = "  moectl node node-3\n",
};
