/* token create|list|revoke: credentials of people, programs and agents. */
#include <string.h>

#include "cli/client.h"
#include "cli/output.h"
#include "cli/value.h"
#include "lib/base/parse.h"
#include "lib/wire/json.h"

static int create(struct cli *cli, const char *role, const char *user, const char *ttl)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int64_t us = 0;
	if (!role)
		return cli_misuse(cli, "--role is missing; one of viewer, user, operator, admin, agent");
	if (ttl && mo_parse_duration_us(ttl, &us) < 0)
		return cli_misuse(cli, "--ttl %s is no duration such as 12h or 30d", ttl);
	mo_buf_str(&body, "{\"role\":");
	wire_string(role, &body);
	if (user) {
		mo_buf_str(&body, ",\"user\":");
		wire_string(user, &body);
	}
	if (ttl) {
		mo_buf_str(&body, ",\"ttl\":");
		wire_string(ttl, &body);
	}
	mo_buf_str(&body, "}");
	int r = client_call(cli, "POST", NULL, body.data, &a, "/v1/tokens");
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	puts(text_or(js_str(a.doc, "token")));
	fprintf(stderr, "token %s, role %s%s%s, expires %s; it is shown only now: keep it in a file of mode 0600 and name that in MOE_TOKEN_FILE\n", text_or(js_str(a.doc, "id")),
		text_or(js_str(a.doc, "role")), js_str(a.doc, "user") ? ", user " : "", js_str(a.doc, "user") ? js_str(a.doc, "user") : "",
		js_str(a.doc, "expires_at") ? js_str(a.doc, "expires_at") : "never");
	return CLI_OK;
}

static void expires_cell(struct table *t, struct json_object *token)
{
	const char *at = js_str(token, "expires_at");
	table_cell(t, "%s", at ? at : "never");
}

static int list(struct cli *cli)
{
	static const struct column columns[] = {
		{ "ID", "id" }, { "ROLE", "role" }, { "USER", "user" }, { "CREATED", "created_at" }, { "EXPIRES", .cell = expires_cell },
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get_all(cli, NULL, &a, "/v1/tokens");
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc);
	if (js_len(items))
		print_table(cli, columns, ELEMENTSOF(columns), items);
	else
		puts("no tokens");
	return CLI_OK;
}

static int revoke(struct cli *cli, const char *id)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	if (!id)
		return cli_misuse(cli, "the ID is missing; `moectl token list` shows them");
	_cleanup_(mo_freep) char *quoted = url_quote(id);
	int r = client_call(cli, "DELETE", id, NULL, &a, "/v1/tokens/%s", quoted);
	if (r)
		return r;
	if (cli->json && a.body.len)
		return print_answer(&a);
	if (!cli->json)
		printf("%s revoked\n", id);
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[2] = { NULL }, *role = NULL, *user = NULL, *ttl = NULL;
	const struct opt opts[] = { { "role", 0, OPT_STR, &role }, { "user", 0, OPT_STR, &user }, { "ttl", 0, OPT_STR, &ttl } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 2);
	if (r)
		return cli_stop(r);
	if (!strcmp(args[0], "create") && !args[1])
		return create(cli, role, user, ttl);
	if (!strcmp(args[0], "list") && !args[1])
		return list(cli);
	if (!strcmp(args[0], "revoke"))
		return revoke(cli, args[1]);
	return cli_misuse(cli, "%s%s%s is none of create, list, revoke ID", args[0], args[1] ? " " : "", args[1] ? args[1] : "");
}

const struct verb verb_token = {
	"token", "Cluster", "token create --role ROLE [--user U] [--ttl T] | list | revoke ID", "credentials of people, programs and agents",
	"  --role ROLE   viewer (reads), user (submits, acts on own jobs), operator (all jobs and nodes), admin (tokens too), agent (nodes only)\n"
	"  --user U      whose jobs it submits\n  --ttl T       valid for 12h, 30d, ... (default: until revoked)\n", run,
};
