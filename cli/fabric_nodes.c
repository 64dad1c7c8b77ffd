/* See fabric_nodes.h. */
#include "cli/fabric_nodes.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/desc.h"
#include "lib/plan/fabric.h"

void fabric_nodes_done(struct fabric_nodes *f)
{
	mo_strs_clear(&f->names, &f->n);
	free(f->job);
}

static void add(struct fabric_nodes *f, const char *name)
{
	if (mo_enum_parse((const char *const *)f->names, f->n, name) < 0)
		mo_strs_add(&f->names, &f->n, name);
}

void fabric_nodes_add(struct fabric_nodes *f, const char *list)
{
	for (const char *at = list; *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");
		_cleanup_(mo_freep) char *name = mo_strndup(at, n);

		if (n)
			add(f, name);
		at += n;
	}
}

int fabric_nodes_of_job(struct cli *cli, const char *job, struct fabric_nodes *f)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = client_job(cli, job, &id);

	if (r || (r = client_get_all(cli, id, &a, "/v1/jobs/%s/ranks", id)))
		return r;
	for (size_t i = 0; i < js_len(js_items(a.doc)); i++)
		if (js_str(js_at(js_items(a.doc), i), "node"))
			add(f, js_str(js_at(js_items(a.doc), i), "node"));
	if (!f->n)
		return cli_fail(CLI_FAILED,
				"fabric check: %s never ran anywhere; name nodes with --nodes", id);
	f->job = TAKE_PTR(id);
	return CLI_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct json_object *find(struct json_object *items, const char *name)
{
	for (size_t i = 0; i < js_len(items); i++)
		if (mo_streq(js_str(js_at(items, i), "name"), name))
			return js_at(items, i);
	return NULL;
}

static int check_node(struct fabric_nodes *f, const char *name, struct json_object *node)
{
	struct json_object *jobs = js_get(node, "jobs");
	int64_t gpus = js_int(node, "gpus");

	if (!node)
		return cli_fail(CLI_NOT_FOUND,
				"fabric check: node %s: there is no such node; `moectl nodes` "
				"lists them",
				name);
	if (js_str(node, "refuses"))
		return cli_fail(CLI_FAILED,
				"fabric check: node %s gets no work: %s; %s, or leave it out with "
				"--nodes",
				name, js_str(node, "refuses"), text_or(js_str(node, "next")));
	if (js_len(jobs)) {
		const char *job = json_object_get_string(js_at(jobs, 0));

		return cli_fail(CLI_FAILED,
				"fabric check: node %s: %s runs there, and a check stops nobody; "
				"wait, `moectl pause %s`, or leave it out with --nodes",
				name, job, job);
	}
	if (gpus < 1 || (f->gpus && gpus != f->gpus))
		return cli_fail(CLI_FAILED,
				"fabric check: node %s has %s GPUs, %s has %lld; check nodes of "
				"one kind together",
				name, text_int(gpus), f->names[0], (long long)f->gpus);
	f->gpus = gpus;
	return CLI_OK;
}

int fabric_nodes_check(struct cli *cli, struct fabric_nodes *f)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r;

	if (f->n < 1 || f->n > FABRIC_NODES_MAX)
		return cli_misuse(cli,
				  "%zu nodes: name 1 to %d with --nodes, --job or cluster.nodes "
				  "of the recipe",
				  f->n, FABRIC_NODES_MAX);
	if ((r = client_get_all(cli, NULL, &a, "/v1/nodes")))
		return r;
	qsort(f->names, f->n, sizeof(*f->names), by_name);
	for (size_t i = 0; i < f->n && !r; i++)
		r = check_node(f, f->names[i], find(js_items(a.doc), f->names[i]));
	return r;
}
