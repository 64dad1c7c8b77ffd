/* See fabric_check.h. lib/plan/fabric.c says what is measured next and what it means; here each
 * measurement is submitted as a job (fabric_run.c), and the result told (fabric_tell.c). */
#include "cli/fabric_check.h"

#include <string.h>

#include "cli/client.h"
#include "cli/dryrun.h"
#include "cli/fabric_nodes.h"
#include "cli/fabric_post.h"
#include "cli/fabric_run.h"
#include "cli/fabric_tell.h"
#include "cli/interrupt.h"
#include "cli/places.h"
#include "cli/recipe_check.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/wire/encode.h"

#define LIMIT_S 300
#define REASON_MAX 500 /* of a drain */

struct check {
	struct fabric_recipe recipe;
	struct fabric_nodes nodes;
	struct fabric fabric;
	struct fabric_job *jobs; /* of its runs */
	size_t n_jobs;
};

static void check_done(struct check *c)
{
	for (size_t i = 0; i < c->n_jobs; i++)
		fabric_job_done(&c->jobs[i]);
	free(c->jobs);
	fabric_done(&c->fabric);
	fabric_nodes_done(&c->nodes);
	mo_buf_done(&c->recipe.text);
	free(c->recipe.sets.items);
}

/* The recipe as it was given, once, before a node is looked at. */
static int read_recipe(struct cli *cli, const char *file, struct check *c)
{
	_cleanup_(recipe_input_done) struct recipe_input in;
	int r = 0;

	recipe_input_init(&in);
	for (size_t i = 0; i < c->recipe.sets.n && !r; i++)
		r = recipe_input_set(cli, &in, c->recipe.sets.items[i]);
	if (r || (r = recipe_input_read(&in, file)) || (r = recipe_input_check(cli, &in)) ||
	    (r = places_check(cli, &in)))
		return r;
	if (in.recipe.checkpoint.dir)
		return cli_fail(CLI_USAGE,
				"%s: checkpoint.dir: a check saves nothing, and several of its "
				"jobs run at once; leave it out",
				in.file);
	for (size_t i = 0; i < in.recipe.n_nodes && !c->nodes.n; i++)
		for (size_t k = 0; k < in.recipe.n_nodes; k++)
			fabric_nodes_add(&c->nodes, in.recipe.nodes[k]);
	c->recipe.file = in.file;
	c->recipe.limit_s = in.recipe.time_limit_us == MO_NONE
				    ? LIMIT_S
				    : MO_MAX(in.recipe.time_limit_us / 1000000, (int64_t)1);
	mo_buf_add(&c->recipe.text, in.text.data, in.text.len);
	return 0;
}

static int submit_run(struct cli *cli, struct check *c, size_t run)
{
	const struct fabric_run *r = &c->fabric.runs[run];
	const char *const pair[] = { c->nodes.names[r->a], c->nodes.names[r->b] };

	return run == 0 ? fabric_submit(cli, &c->recipe, (const char *const *)c->nodes.names,
					c->nodes.n, &c->jobs[run])
			: fabric_submit(cli, &c->recipe, pair, 2, &c->jobs[run]);
}

static int round_run(struct cli *cli, struct check *c, size_t first)
{
	size_t n = c->fabric.n_runs - first;
	int r = 0;

	while (c->n_jobs < c->fabric.n_runs)
		*MO_GROW(c->jobs, c->n_jobs) = (struct fabric_job){ 0 };
	if (!cli->json)
		fprintf(stderr, "moectl: fabric check: %zu %s\n", first ? n : c->nodes.n,
			first ? n == 1 ? "pair" : "pairs at once" : "nodes together");
	for (size_t i = first; i < c->n_jobs && !r; i++)
		r = submit_run(cli, c, i);
	if (r)
		fabric_cancel(cli, c->jobs + first, n);
	else
		r = fabric_wait(cli, &c->recipe, c->jobs + first, n);
	for (size_t i = first; i < c->n_jobs && !r; i++) {
		if (c->jobs[i].failed)
			fabric_answer(&c->fabric, i, 0, c->jobs[i].failed);
		else
			fabric_answer_text(&c->fabric, i,
					   c->jobs[i].out.data ? c->jobs[i].out.data : "");
	}
	return r;
}

static int drain(struct cli *cli, const struct fabric_found *found, size_t node, bool really)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	_cleanup_(mo_freep) char *why = fabric_evidence(found, node);
	_cleanup_(mo_freep) char *whole = mo_printf("fabric check: %s", why);
	_cleanup_(mo_freep) char *reason =
		mo_strndup(whole, (size_t)mo_utf8_shown(whole, REASON_MAX));
	_cleanup_(mo_freep) char *quoted = url_quote(found->nodes[node]);
	int r;

	if (!really && cli->json)
		return CLI_OK;
	if (!really) {
		dryrun_word(&body, reason);
		printf("%-10s moectl drain %s --reason %s\n", "next", found->nodes[node],
		       body.data);
		return CLI_OK;
	}
	mo_buf_str(&body, "{\"when\":\"idle\",\"reason\":");
	wire_string(reason, &body);
	mo_buf_str(&body, "}");
	r = client_call(cli, "POST", found->nodes[node], body.data, &a, "/v1/nodes/%s/drain",
			quoted);
	if (!r && !cli->json)
		printf("%-10s %s gets no new work; `moectl undrain %s` takes it back\n", "drained",
		       found->nodes[node], found->nodes[node]);
	return r;
}

static int tell(struct cli *cli, const struct check *c, const char *out, bool drains)
{
	const struct fabric_found found = { &c->fabric, c->nodes.names, c->jobs };
	const struct mo_buf *curve = &c->jobs[0].out;
	struct json_object *doc = fabric_document(&found);
	int verdict = fabric_verdict(&c->fabric), r = CLI_OK, w;

	if (cli->json)
		print_json_doc(doc);
	else
		fabric_print(cli, &found, doc);
	if (c->nodes.job)
		r = fabric_post(cli, c->nodes.job, doc);
	json_object_put(doc);
	for (size_t i = 0; i < c->nodes.n && verdict == FABRIC_ODD; i++)
		if (fabric_is_odd(&c->fabric, i) && (w = drain(cli, &found, i, drains)))
			return w;
	if (out && curve->len && (w = mo_write_file(out, curve->data, curve->len, 0644, false)) < 0)
		return cli_fail(CLI_FAILED,
				"fabric check: %s: %s; what it measured is in `moectl "
				"logs %s`",
				out, strerror(-w), c->jobs[0].id);
	return r ? r : verdict == FABRIC_FINE ? CLI_OK : CLI_FAILED;
}

int fabric_check(struct cli *cli, int argc, char **argv)
{
	_cleanup_(check_done) struct check c = { 0 };
	const char *args[1] = { NULL }, *nodes = NULL, *job = NULL, *out = NULL, *expect = NULL;
	bool drains = false;
	double expected = 0;
	const struct opt opts[] = {
		{ "nodes", 0, OPT_STR, &nodes },        { "job", 0, OPT_STR, &job },
		{ "set", 0, OPT_STRS, &c.recipe.sets }, { "expect", 0, OPT_STR, &expect },
		{ "drain", 0, OPT_FLAG, &drains },      { "out", 'o', OPT_STR, &out },
	};
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);

	if (r)
		return cli_stop(r);
	if (!args[0])
		return cli_misuse(cli, "check: it needs RECIPE, the program that measures");
	if (nodes && job)
		return cli_misuse(cli, "--nodes and --job: one of them says where");
	if (expect && (mo_parse_double(expect, &expected) < 0 || !(expected > 0)))
		return cli_misuse(cli, "--expect %s is no bandwidth in GB/s", expect);
	if (nodes)
		fabric_nodes_add(&c.nodes, nodes);
	if (job && (r = fabric_nodes_of_job(cli, job, &c.nodes)))
		return r;
	if ((r = read_recipe(cli, args[0], &c)) || (r = fabric_nodes_check(cli, &c.nodes)))
		return r;
	c.recipe.gpus = c.nodes.gpus;
	fabric_init(&c.fabric, c.nodes.n, expected);
	interrupt_catch();
	for (size_t first; !r && (first = fabric_next(&c.fabric)) < c.fabric.n_runs;)
		r = round_run(cli, &c, first);
	return r ? r : tell(cli, &c, out, drains);
}
