/* explain env|bind|config|event|schema: every variable of a rank with value, reason and source;
 * what each rank is bound to and why. */
#include "cli/explain.h"

#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/config.h"
#include "cli/explain_event.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/idset.h"
#include "lib/recipe/recipe_schema.h"

#define WHY_RANKS_MAX 1024 /* sentences of more are not gathered */

static void print_env(const struct cli *cli, struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *e = js_at(items, i);
		const char *overrides = js_str(e, "overrides"), *value = js_str(e, "value"),
			   *file = js_str(e, "file");
		if (value || file)
			printf("%s=%s%s%s\n", paint(cli, "1", text_or(js_str(e, "name"))),
			       value ? value : "(", value ? "" : file,
			       value ? "" : " on the node)");
		else
			printf("%s is not set\n", paint(cli, "1", text_or(js_str(e, "name"))));
		printf("    %s  [%s]%s%s\n", text_or(js_str(e, "reason")),
		       text_or(js_str(e, "source")), overrides ? "  overrides " : "",
		       overrides ? overrides : "");
	}
}

static void read_back_cell(struct table *t, struct json_object *rank)
{
	struct json_object *v = js_get(rank, "bind_verified");
	table_cell(t, "%s", !v ? "not known" : json_object_get_boolean(v) ? "verified" : "differs");
}

static void l3_cell(struct table *t, struct json_object *rank)
{
	table_cell(t, "%s", text_int((int64_t)js_len(js_get(rank, "l3"))));
}

static bool says(struct json_object *rank, const char *sentence)
{
	struct json_object *why = js_get(rank, "why");
	for (size_t i = 0; i < js_len(why); i++)
		if (!strcmp(json_object_get_string(js_at(why, i)), sentence))
			return true;
	return false;
}

/* Each sentence once, with the ranks that it holds for. */
static void print_why(struct json_object *items)
{
	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *why = js_get(js_at(items, i), "why");
		for (size_t w = 0; w < js_len(why); w++) {
			const char *sentence = json_object_get_string(js_at(why, w));
			_cleanup_(mo_idset_done) struct mo_idset ranks = { 0 };
			bool printed = false;
			for (size_t k = 0; k < js_len(items) && !printed; k++) {
				int64_t rank = js_int(js_at(items, k), "rank");
				bool has = says(js_at(items, k), sentence);
				printed = has && k < i;
				if (has && rank >= 0 && rank <= UINT16_MAX)
					mo_idset_add(&ranks, (size_t)rank);
			}
			_cleanup_(mo_freep) char *list = printed ? NULL : mo_idset_format(&ranks);
			if (list)
				printf("  rank %s: %s\n", list, sentence);
		}
	}
}

static void print_bind(const struct cli *cli, struct json_object *items)
{
	static const struct column columns[] = {
		{ ">RANK", "rank", CELL_INT },
		{ "NODE", "node" },
		{ ">GPU", "gpu", CELL_INT },
		{ "BDF", "bdf" },
		{ ">NUMA", "numa_node", CELL_INT },
		{ "CPUS", "cpus" },
		{ ">CORES", "cores", CELL_INT },
		{ ">L3", .cell = l3_cell },
		{ "MEMORY", "memory" },
		{ "NIC", "nic" },
		{ "READ BACK", .cell = read_back_cell },
		{ "NOTE", "bind_note" },
	};
	print_table(cli, columns, ELEMENTSOF(columns), items);
	puts("\nwhy:");
	if (js_len(items) <= WHY_RANKS_MAX)
		print_why(items);
	else
		puts("  there are too many ranks to gather the reasons; choose one with --rank R");
}

static bool has_rank(struct json_object *items, int64_t rank)
{
	for (size_t i = 0; i < js_len(items); i++)
		if (js_int(js_at(items, i), "rank") == rank)
			return true;
	return false;
}

static int config(struct cli *cli, const char *file, const char *key, const struct strs *sets)
{
	_cleanup_(recipe_input_done) struct recipe_input in;
	recipe_input_init(&in);
	for (size_t i = 0; i < sets->n; i++) {
		int r = recipe_input_set(cli, &in, sets->items[i]);
		if (r)
			return r;
	}
	return explain_config(cli, file, key, &in);
}

static int of_job(struct cli *cli, bool env, const char *job, int64_t rank)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = client_job(cli, job, &id);
	if (r)
		return r;
	if (env && rank == MO_NONE)
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/env", id);
	else if (env)
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/env?rank=%lld", id, (long long)rank);
	else if (rank == MO_NONE)
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/bind", id);
	else
		r = client_get_all(cli, id, &a, "/v1/jobs/%s/bind?rank=%lld", id, (long long)rank);
	if (r)
		return r;
	if (!env && rank != MO_NONE && js_len(js_items(a.doc)) && !has_rank(js_items(a.doc), rank))
		return cli_fail(CLI_NOT_FOUND,
				"%s: it has no rank %lld; `moectl ranks %s` lists them", id,
				(long long)rank, id);
	if (cli->json)
		return print_answer(&a);
	if (js_str(a.doc, "note"))
		fprintf(stderr, "moectl: explain: %s: %s\n", id, js_str(a.doc, "note"));
	bool example = mo_streq(js_str(a.doc, "placed_on"), "example");

	if (example)
		puts("on an EXAMPLE, not on your machines:");
	if (env) {
		printf("rank %lld of %s, %s:\n", (long long)(rank == MO_NONE ? 0 : rank), id,
		       mo_streq(js_str(a.doc, "source"), "node") ? "as its node started it"
								 : "as a launch would start it");
		print_env(cli, js_items(a.doc));
	} else
		print_bind(cli, js_items(a.doc));
	return CLI_OK;
}

/* No name of a job, or a recipe that is here; a job may have the name of any other file. */
static bool is_recipe(const char *what)
{
	const char *dot = strrchr(what, '.');

	return strchr(what, '/') ||
	       ((mo_streq(dot, ".yaml") || mo_streq(dot, ".yml")) && access(what, F_OK) == 0);
}

static int explain_schema(void)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	recipe_schema(&b);
	print_json(b.data, b.len);
	return CLI_OK;
}

static int explain(struct cli *cli, const char *const *args, const char *key,
		   const struct strs *sets, int64_t rank)
{
	static const char *const kinds[] = { "env", "bind", "config", "event", "schema" };
	bool event = !strcmp(args[0], "event"), schema = !strcmp(args[0], "schema");

	if (schema && (key || sets->n || rank != MO_NONE || args[1]))
		return cli_misuse(cli, "the schema is the same for all recipes: remove the rest");
	if (schema)
		return explain_schema();
	if (event && (key || sets->n || rank != MO_NONE))
		return cli_misuse(cli, "a type of events is the same for all jobs and ranks: "
				       "remove the options");
	if (event)
		return explain_event(cli, args[1]);
	bool known = false;
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		known |= !strcmp(args[0], kinds[i]);
	if (!known)
		return cli_misuse_word(cli, args[0], kinds, ELEMENTSOF(kinds));
	bool is_config = !strcmp(args[0], "config");
	if (!args[1])
		return cli_misuse(cli, "%s is missing", is_config ? "RECIPE or JOB" : "JOB");
	if (is_config)
		return rank != MO_NONE ? cli_misuse(cli, "a configuration is the same for all "
							 "ranks: remove --rank")
				       : config(cli, args[1], key, sets);
	bool env = !strcmp(args[0], "env");
	if (key || sets->n)
		return cli_misuse(cli, "--key and --set belong to explain config");
	if (is_recipe(args[1]))
		return cli_fail(CLI_USAGE,
				"explain: %s: explain %s needs a JOB; for a recipe: moectl submit "
				"%s --dry-run",
				args[1], args[0], args[1]);
	return of_job(cli, env, args[1], rank);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[2] = { NULL }, *key = NULL;
	struct strs sets = { 0 };
	int64_t rank = MO_NONE;
	const struct opt opts[] = {
		{ "rank", 'r', OPT_INT, &rank, 0, INT32_MAX },
		{ "key", 0, OPT_STR, &key },
		{ "set", 0, OPT_STRS, &sets },
	};
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 2);
	r = r ? cli_stop(r) : explain(cli, args, key, &sets, rank);
	free(sets.items);
	return r;
}

const struct verb verb_explain = {
	"explain",
	"Understand",
	"explain env|bind JOB [--rank R] | explain config RECIPE|JOB [--key K] [--set "
	"key=value]... | explain event [TYPE] | explain schema",
	"what ranks were given and why: variables, binding, engine's configuration; what an event "
	"means, and a recipe may say",
	"env: each variable with reason and source; bind: each rank's GPU, CPUs, memory and NIC as "
	"read back, and why\n"
	"  --rank R          of this rank (env: default 0)\n"
	"config: each key of the engine's configuration, and who said it\n"
	"  --key K           only this key, and those below it\n"
	"  --set key=value   as in submit\n"
	"It reads the experiment that the recipe names, where its files are on this machine; no "
	"controller is needed.\n"
	"A recipe that fails a rule is shown as well, with the rule and exit status 2.\n"
	"Of a job it is what the job's record keeps, also after its end.\n"
	"event: what events of this type tell, and what to do; without TYPE all types.\n"
	"schema: what a recipe may say, as JSON Schema, for editors.\n",
	run,
	.examples = "  moectl explain env j-7 --rank 3\n"
		    "  moectl explain config recipe.yaml --key lr\n"
		    "  moectl explain event hang.confirmed\n"
		    "  moectl explain schema >recipe.schema.json\n",
};
