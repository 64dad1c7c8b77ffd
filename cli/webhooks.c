/* webhooks [test WEBHOOK]: where events are posted to, and what came of it. */
#include "cli/webhooks.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

/* "answered 503", or why there was no answer; caller frees. */
static char *answer_of(struct json_object *delivery)
{
	const char *error = js_str(delivery, "error");

	return error ? mo_strdup(error)
		     : mo_printf("answered %lld", (long long)js_int(delivery, "status"));
}

static void newest_cell(struct table *t, struct json_object *webhook)
{
	struct json_object *all = js_get(webhook, "deliveries");
	struct json_object *newest =
		js_len(all) ? json_object_array_get_idx(all, js_len(all) - 1) : NULL;
	_cleanup_(mo_freep) char *answer = newest ? answer_of(newest) : NULL;

	if (newest)
		table_cell(t, "%s: %s", text_or(js_str(newest, "result")), answer);
	else
		table_cell(t, "-");
}

static int list(struct cli *cli)
{
	static const struct column columns[] = {
		{ "NAME", "name" },
		{ "TO", "host", .less = 1 },
		{ "FORMAT", "format", .less = 5 },
		{ "DELIVERED", "delivered", CELL_INT, .less = 4 },
		{ "REFUSED", "refused", CELL_INT, .less = 3 },
		{ "FAILED", "failed", CELL_INT },
		{ "WAITING", "waiting", CELL_INT },
		{ "NEXT TRY", "due_at", .less = 2 },
		{ "NEWEST", .cell = newest_cell },
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get_all(cli, NULL, &a, "/v1/webhooks");

	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc);
	if (js_len(items))
		print_table(cli, columns, ELEMENTSOF(columns), items);
	else
		puts("no webhooks; `webhooks` of moed.yaml names the file with them");
	return CLI_OK;
}

static int test(struct cli *cli, const char *name)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = url_quote(name);
	int r = client_call(cli, "POST", name, NULL, &a, "/v1/webhooks/%s/test", quoted);

	if (r)
		return r;
	_cleanup_(mo_freep) char *answer = answer_of(a.doc);
	bool taken = mo_streq(js_str(a.doc, "result"), "delivered");

	if (cli->json)
		print_answer(&a);
	else if (taken)
		printf("%s took it: %s after %lld ms\n", name, answer,
		       (long long)js_int(a.doc, "ms"));
	return taken ? CLI_OK : cli_fail(CLI_FAILED, "%s: %s", name, answer);
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const verbs[] = { "test" };
	const char *args[2] = { NULL };
	int r = cli_options(cli, argc, argv, NULL, 0, args, 0, 2);

	if (r)
		return cli_stop(r);
	if (!args[0])
		return list(cli);
	if (!mo_streq(args[0], "test"))
		return cli_misuse_word(cli, args[0], verbs, ELEMENTSOF(verbs));
	if (!args[1])
		return cli_misuse(cli, "the WEBHOOK is missing; `moectl webhooks` shows them");
	return test(cli, args[1]);
}

const struct verb verb_webhooks = {
	"webhooks",
	"Cluster",
	"webhooks [test WEBHOOK]",
	"where events are posted to, and what came of it",
	"  test WEBHOOK  post an event of type webhook.test there, and say what was answered\n",
	run,
	.examples = "  moectl webhooks\n"
		    "  moectl webhooks test oncall\n",
};
