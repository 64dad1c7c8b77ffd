/* image pull|list|rm: images that nodes are to have before a job needs them, have, and need not
 * have any more. The nodes know; here they are asked through the controller. */
#include "cli/image.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

#define LOOK_MS 1000
#define ANSWER_MS 60000 /* nodes look at many files */

struct wish {
	const char *nodes, *auth;
	bool wait;
};

static bool is_all(const char *nodes)
{
	return !nodes || mo_streq(nodes, "all");
}

static struct json_object *pull_body(const char *image, const struct wish *w)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "image", json_object_new_string(image));
	if (w->auth)
		json_object_object_add(body, "auth", json_object_new_string(w->auth));
	if (is_all(w->nodes))
		return body;
	struct json_object *nodes = json_object_new_array();

	for (const char *at = w->nodes; *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");

		if (n > 0)
			json_object_array_add(nodes, json_object_new_string_len(at, (int)n));
		at += n;
	}
	json_object_object_add(body, "nodes", nodes);
	return body;
}

/* Until it has ended; a holds its document then. */
static int await(struct cli *cli, struct answer *a)
{
	int64_t id = js_int(a->doc, "id");

	interrupt_catch();
	while (!js_str(a->doc, "ended_at")) {
		if (interrupt_wait(LOOK_MS))
			return cli_fail(CLI_FAILED,
					"image pull %lld goes on; `moectl image list` shows how "
					"far it is",
					(long long)id);
		answer_done(a);
		*a = (struct answer){ 0 };
		int r = client_get(cli, NULL, a, "/v1/images/pull/%lld", (long long)id);

		if (r)
			return r;
	}
	return CLI_OK;
}

static bool has_failed(struct json_object *nodes)
{
	for (size_t i = 0; i < js_len(nodes); i++)
		if (mo_streq(js_str(js_at(nodes, i), "state"), "failed"))
			return true;
	return false;
}

static void print_pull(struct cli *cli, struct json_object *pull)
{
	static const struct column columns[] = {
		{ "NODE", "node" },
		{ "STATE", "state" },
		{ ">DONE", "done", CELL_BYTES },
		{ ">OF", "size", CELL_BYTES },
		{ "ERROR", "error" },
	};

	printf("pull %s of %s  %s\n", text_int(js_int(pull, "id")), text_or(js_str(pull, "image")),
	       text_or(js_str(pull, "digest")));
	print_table(cli, columns, ELEMENTSOF(columns), js_get(pull, "nodes"));
}

static int pull(struct cli *cli, const char *image, const struct wish *w)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	struct json_object *body = pull_body(image, w);
	int r = client_call(cli, "POST", image, json_object_to_json_string(body), &a,
			    "/v1/images/pull");

	json_object_put(body);
	if (r == 0 && w->wait)
		r = await(cli, &a);
	if (r)
		return r;
	if (cli->json)
		r = print_answer(&a);
	else
		print_pull(cli, a.doc);
	if (!w->wait && !cli->json)
		fprintf(stderr,
			"`moectl image list` shows how far it is; a start of the controller "
			"ends it, and nodes keep what they have\n");
	return r ? r : has_failed(js_get(a.doc, "nodes")) ? CLI_FAILED : CLI_OK;
}

static void names_cell(struct table *t, struct json_object *image)
{
	struct json_object *names = js_get(image, "names");

	table_cell(t, "%s", text_or(json_object_get_string(js_at(names, js_len(names) - 1))));
}

static void user_cell(struct table *t, struct json_object *image)
{
	const char *user = js_str(image, "user");

	table_cell(t, "%s", user ? user : "all");
}

static void use_cell(struct table *t, struct json_object *image)
{
	struct json_object *jobs = js_get(image, "jobs");
	bool used = json_object_get_boolean(js_get(image, "in_use"));

	table_cell(t, "%s",
		   js_len(jobs) ? json_object_get_string(js_at(jobs, 0))
		   : used       ? "yes"
				: "-");
}

/* 1 when one or more could not be asked */
static int tell_unasked(struct json_object *doc)
{
	struct json_object *unasked = js_get(doc, "unasked");

	for (size_t i = 0; i < js_len(unasked); i++)
		fprintf(stderr, "moectl: node %s: %s\n", text_or(js_str(js_at(unasked, i), "node")),
			text_or(js_str(js_at(unasked, i), "why")));
	return js_len(unasked) ? CLI_FAILED : CLI_OK;
}

static int ask(struct cli *cli, const char *method, const char *what, const char *path,
	       struct answer *ret)
{
	int r = client_send(cli,
			    &(struct request){
				    .method = method, .path = path, .timeout_ms = ANSWER_MS },
			    ret);

	return r ? r : client_judge(cli, what, ret);
}

static int list(struct cli *cli, const char *node)
{
	static const struct column columns[] = {
		{ "NODE", "node" },
		{ "DIGEST", "digest" },
		{ "NAME", .cell = names_cell },
		{ ">BYTES", "bytes", CELL_BYTES },
		{ "LAST USE", "used_at" },
		{ "OF", .cell = user_cell },
		{ "USED BY", .cell = use_cell },
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = node ? url_quote(node) : NULL;
	_cleanup_(mo_freep) char *path =
		mo_printf("/v1/images%s%s", node ? "?node=" : "", node ? quoted : "");
	int r = ask(cli, "GET", node, path, &a);

	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc), *pulls = js_get(a.doc, "pulls");

	if (js_len(items))
		print_table(cli, columns, ELEMENTSOF(columns), items);
	else
		puts("no images");
	for (size_t i = 0; i < js_len(pulls); i++)
		if (!js_str(js_at(pulls, i), "ended_at"))
			print_pull(cli, js_at(pulls, i));
	return tell_unasked(a.doc);
}

static int removed(const struct cli *cli, struct json_object *items)
{
	int r = CLI_OK;

	for (size_t i = 0; i < js_len(items); i++) {
		struct json_object *image = js_at(items, i), *jobs = js_get(image, "jobs");
		const char *node = text_or(js_str(image, "node"));
		const char *digest = text_or(js_str(image, "digest"));

		if (json_object_get_boolean(js_get(image, "removed"))) {
			if (!cli->json)
				printf("%s  %s removed, %s\n", node, digest,
				       text_bytes(js_int(image, "bytes")));
			continue;
		}
		r = CLI_FAILED;
		fprintf(stderr, "moectl: node %s: %s stays: %s%s%s\n", node, digest,
			text_or(js_str(image, "error")), js_len(jobs) ? " by " : "",
			js_len(jobs) ? json_object_get_string(js_at(jobs, 0)) : "");
	}
	return r;
}

static int rm(struct cli *cli, const char *image, const struct wish *w)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = url_quote(image);
	_cleanup_(mo_freep) char *nodes = is_all(w->nodes) ? NULL : url_quote(w->nodes);
	_cleanup_(mo_freep) char *path = mo_printf("/v1/images?image=%s%s%s", quoted,
						   nodes ? "&nodes=" : "", nodes ? nodes : "");
	int r = ask(cli, "DELETE", image, path, &a);

	if (r)
		return r;
	if (cli->json)
		r = print_answer(&a);
	int told = removed(cli, js_items(a.doc));
	return r ? r : MO_MAX(tell_unasked(a.doc), told);
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const verbs[] = { "pull", "list", "rm" };
	const char *args[2] = { NULL };
	struct wish w = { 0 };
	const struct opt opts[] = {
		{ "nodes", 0, OPT_STR, &w.nodes, 0, 0 },
		{ "auth", 0, OPT_STR, &w.auth, 0, 0 },
		{ "wait", 0, OPT_FLAG, &w.wait, 0, 0 },
	};
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 2);

	if (r)
		return cli_stop(r);
	bool pulls = mo_streq(args[0], "pull"), lists = mo_streq(args[0], "list");

	if (!pulls && !lists && !mo_streq(args[0], "rm"))
		return cli_misuse_word(cli, args[0], verbs, ELEMENTSOF(verbs));
	if (!pulls && (w.auth || w.wait))
		return cli_misuse(cli, "--auth and --wait are for pull");
	if (lists && w.nodes)
		return cli_misuse(cli, "name the node behind list");
	if (lists)
		return list(cli, args[1]);
	if (!args[1])
		return cli_misuse(cli, "the image is missing");
	return pulls ? pull(cli, args[1], &w) : rm(cli, args[1], &w);
}

const struct verb verb_image = {
	"image",
	"Cluster",
	"image pull IMAGE [--nodes A,B|all] [--auth FILE] [--wait] | list [NODE] | rm DIGEST|IMAGE "
	"[--nodes A,B|all]",
	"images of the nodes: bring them before a job needs them, see and remove them",
	"  pull            have IMAGE, named as in a recipe, brought to nodes; no more than "
	"pull_parallel nodes fetch at once, and jobs come first\n"
	"  --nodes A,B     only there (default: all nodes that are up)\n"
	"  --auth FILE     your file with passwords of registries, on the nodes; the image is then "
	"yours alone\n"
	"  --wait          until all nodes have it; exit status 1 when one has failed\n"
	"  list            digest, newest name, size and last use of what each node has, and which "
	"job runs in it\n"
	"  rm              remove it; what a job uses stays, and the job is named\n"
	"A pull lasts 12 hours at most and ends with the controller; nodes keep what they have, "
	"and "
	"a job brings what is missing.\n",
	run,
	.examples = "  moectl image pull docker.io/rocm/primus:v26.5 --nodes gpu-01,gpu-02 --wait\n"
		    "  moectl image list gpu-01\n"
		    "  moectl image rm docker.io/rocm/primus:v26.4\n",
};
