/* token join|create|list|revoke|whoami: credentials of people, programs and agents. */
#include "cli/token.h"

#include <json-c/json.h>
#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/wire/encode.h"

struct wish {
	const char *role, *user, *ttl, *out;
	int64_t nodes;
};

static void member(struct mo_buf *body, const char *key, const char *value)
{
	if (!value)
		return;
	mo_buf_printf(body, "%s\"%s\":", body->len > 1 ? "," : "", key);
	wire_string(value, body);
}

/* A token that nobody has seen is of no use, and would stay. */
static int not_stored(struct cli *cli, const char *id, const char *out, int error)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	const char *gone = client_call(cli, "DELETE", id, NULL, &a, "/v1/tokens/%s", id)
				   ? ""
				   : "; the token was revoked again";

	return cli_fail(CLI_FAILED, "%s: %s%s; name a file that can be written", out,
			strerror(error), gone);
}

static int keep(struct cli *cli, struct json_object *doc, const char *out)
{
	_cleanup_(mo_freep) char *line = mo_printf("%s\n", text_or(js_str(doc, "token")));
	int r = mo_write_file(out, line, strlen(line), 0600, true);

	if (r < 0)
		return not_stored(cli, text_or(js_str(doc, "id")), out, -r);
	json_object_object_del(doc, "token");
	return CLI_OK;
}

static void announce(struct json_object *doc, const struct wish *w)
{
	const char *user = js_str(doc, "user"), *until = js_str(doc, "expires_at");
	int64_t nodes = js_int(doc, "nodes");
	_cleanup_(mo_freep) char *whose =
		nodes > 0 ? mo_printf(" for %lld node%s", (long long)nodes, nodes == 1 ? "" : "s")
		: user && *user ? mo_printf(", user %s", user)
				: mo_strdup("");
	_cleanup_(mo_freep) char *where =
		w->out ? mo_printf("it is in %s (0600)", w->out)
		       : mo_strdup("it is shown only now: keep it in a file of mode 0600 (--out "
				   "FILE writes one)");

	fprintf(stderr, "token %s, role %s%s, expires %s; %s%s\n", text_or(js_str(doc, "id")),
		text_or(js_str(doc, "role")), whose, until ? until : "never", where,
		nodes > 0 ? ", and name that file as token_file in agent.yaml on the nodes"
		: w->out  ? "; name it in MOE_TOKEN_FILE"
			  : " and name that in MOE_TOKEN_FILE");
}

static int create(struct cli *cli, const struct wish *w)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int64_t us = 0;
	if (!w->role)
		return cli_misuse(cli,
				  "--role is missing; one of viewer, user, operator, admin, agent");
	if (w->ttl && mo_parse_duration_us(w->ttl, &us) < 0)
		return cli_misuse(cli, "--ttl %s is no duration such as 12h or 30d", w->ttl);
	mo_buf_str(&body, "{");
	member(&body, "role", w->role);
	member(&body, "user", w->user);
	member(&body, "ttl", w->ttl);
	if (w->nodes != MO_NONE)
		mo_buf_printf(&body, ",\"nodes\":%lld", (long long)w->nodes);
	mo_buf_str(&body, "}");
	int r = client_call(cli, "POST", NULL, body.data, &a, "/v1/tokens");
	if (!r && w->out)
		r = keep(cli, a.doc, w->out);
	if (r)
		return r;
	if (cli->json && w->out) {
		print_json_doc(a.doc);
		return CLI_OK;
	}
	if (cli->json)
		return print_answer(&a);
	if (!w->out)
		puts(text_or(js_str(a.doc, "token")));
	announce(a.doc, w);
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
		{ "ID", "id" },
		{ "ROLE", "role" },
		{ "USER", "user" },
		{ "CREATED", "created_at" },
		{ "EXPIRES", .cell = expires_cell },
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

static int whoami(struct cli *cli)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get(cli, NULL, &a, "/v1/whoami");

	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	const char *id = js_str(a.doc, "token_id"), *user = js_str(a.doc, "user");

	printf("%s, role %s, by %s%s at %s\n", user ? user : "no user",
	       text_or(js_str(a.doc, "role")), id ? "token " : "the UNIX socket", id ? id : "",
	       client_url(cli));
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const verbs[] = { "join", "create", "list", "revoke", "whoami" };
	const char *args[2] = { NULL };
	struct wish w = { .nodes = MO_NONE };
	const struct opt opts[] = {
		{ "role", 0, OPT_STR, &w.role },
		{ "user", 0, OPT_STR, &w.user },
		{ "ttl", 0, OPT_STR, &w.ttl },
		{ "out", 0, OPT_STR, &w.out },
		{ "nodes", 0, OPT_INT, &w.nodes, .min = 1, .max = MO_NODES_MAX },
	};
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 2);
	if (r)
		return cli_stop(r);
	bool join = !strcmp(args[0], "join");
	if (join && (w.role || w.user))
		return cli_misuse(cli, "join takes no --role and no --user: each node gets a token "
				       "of its own with it");
	if (w.nodes != MO_NONE && !join)
		return cli_misuse(cli, "--nodes belongs to `token join`");
	if (join) {
		w.role = "join";
		w.nodes = w.nodes == MO_NONE ? 1 : w.nodes;
	}
	if ((join || !strcmp(args[0], "create")) && !args[1])
		return create(cli, &w);
	if (!strcmp(args[0], "list") && !args[1])
		return list(cli);
	if (!strcmp(args[0], "whoami") && !args[1])
		return whoami(cli);
	if (!strcmp(args[0], "revoke"))
		return revoke(cli, args[1]);
	if (args[1] && mo_enum_parse(verbs, ELEMENTSOF(verbs), args[0]) >= 0)
		return cli_misuse(cli, "%s takes no other word, but there is %s", args[0], args[1]);
	return cli_misuse_word(cli, args[0], verbs, ELEMENTSOF(verbs));
}

const struct verb verb_token = {
	"token",
	"Cluster",
	"token join [--nodes N] [--ttl T] [--out FILE] | create --role ROLE [--user U] [--ttl T] "
	"[--out FILE] | list | revoke ID | whoami",
	"credentials of people, programs and agents",
	"  join          a token with which N nodes join: each agent trades it for one of its own, "
	"which it renews by itself\n"
	"  --nodes N     for how many nodes (default 1)\n"
	"  --role ROLE   viewer (reads), user (submits, acts on own jobs), operator (all jobs and "
	"nodes), admin (tokens too), agent (one node only)\n"
	"  --user U      whose jobs it submits; with --role agent: the node\n"
	"  --ttl T       valid for 12h, 30d, ... (default 30d; of a join token 1h)\n"
	"  --out FILE    write it there with mode 0600 instead of showing it\n"
	"  whoami        who you are to the controller, and what you may do\n",
	run,
	.examples = "  moectl token join --nodes 8 --out join.token\n"
		    "  moectl token create --role viewer --ttl 90d\n"
		    "  moectl token whoami\n",
};
