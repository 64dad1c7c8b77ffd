/* doctor: what of the cluster is not as it should be, and what to do about it. A table of checks:
 * each has a name, the documents that it reads, and a function that adds what it found. Whatever
 * is found has a state in the words of node checks: ok, warn (soon, or a risk), crit (something
 * does not work now), unknown (it could not be checked). To add one: a row. */
#include "cli/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "cli/client.h"
#include "cli/doctor_image.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/address.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"

#define SOON_US (7LL * 86400 * 1000000)

/* NODE: with its findings, of one that is asked about; rows that read it are left out else */
enum document { DOC_TOKENS, DOC_NODES, DOC_CLUSTER, DOC_NODE, _DOC_N };
static const char *const paths[_DOC_N] = { "/v1/tokens", "/v1/nodes", "/v1/cluster", "/v1/nodes/" };

struct doctor {
	struct cli *cli;
	const char *node; /* what is asked about; NULL = all */
	struct json_object *docs[_DOC_N];
	int statuses[_DOC_N];
	struct json_object *found; /* items */
	bool crit;
	const struct check *now; /* whose row it is */
	size_t n_before;         /* what the checks before it found */
};
struct check {
	const char *name, *fine; /* fine: said when nothing was found */
	unsigned documents;      /* 1u << enum document, or'ed */
	void (*check)(struct doctor *d);
};

static void add(struct doctor *d, const char *state, const char *object, const char *next,
		const char *fmt, ...) _printf_(5, 6);
static void add(struct doctor *d, const char *state, const char *object, const char *next,
		const char *fmt, ...)
{
	struct json_object *o = json_object_new_object();
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_object_add(o, "check", json_object_new_string(d->now->name));
	json_object_object_add(o, "object", object ? json_object_new_string(object) : NULL);
	json_object_object_add(o, "state", json_object_new_string(state));
	json_object_object_add(o, "text", json_object_new_string(text));
	json_object_object_add(o, "next", next ? json_object_new_string(next) : NULL);
	json_object_array_add(d->found, o);
	d->crit |= !strcmp(state, "crit");
}

/* ---- tokens ---- */

static bool before(const char *moment, int64_t us)
{
	int64_t at;

	return moment && mo_time_parse(moment, &at) == 0 && at < us;
}

/* The next one from *i on that concerns the node asked about; NULL at the end. */
static struct json_object *next_token(const struct doctor *d, size_t *i)
{
	struct json_object *items = js_items(d->docs[DOC_TOKENS]), *t;

	while ((t = js_at(items, (*i)++)))
		if (!d->node || (mo_streq(js_str(t, "role"), "agent") &&
				 (!js_str(t, "user") || mo_streq(js_str(t, "user"), d->node))))
			return t;
	return NULL;
}

/* A controller of 0.1 has no join tokens, and accepts those of no node from everywhere. */
static bool is_old(const struct doctor *d)
{
	const char *version = js_str(d->docs[DOC_CLUSTER], "version");

	return version && mo_starts_with(version, "0.1.");
}

/* How a node comes by a token of its own. */
static const char *own_token(const struct doctor *d)
{
	if (is_old(d))
		return "`moectl token create --role agent --user NODE` (this controller knows no "
		       "join tokens), and put it into its token_file";
	return "make a join token (`moectl token join`) and put it into its token_file";
}

/* Do nodes come from other machines? One of 0.1 does not say where it listens; its nodes, and the
 * way to it, do. */
static bool is_reached(struct cli *cli, const struct doctor *d)
{
	struct json_object *loopback = NULL, *nodes = js_items(d->docs[DOC_NODES]);
	const char *url = client_url(cli);

	if (json_object_object_get_ex(d->docs[DOC_CLUSTER], "loopback", &loopback))
		return !json_object_get_boolean(loopback);
	for (size_t i = 0; i < js_len(nodes); i++) {
		const char *address = js_str(js_at(nodes, i), "address");

		if (address && *address && !mo_address_loopback(address))
			return true;
	}
	return mo_starts_with(url, "https://");
}

static void unbound(struct doctor *d)
{
	const char *state = "warn";
	const char *words =
		"bound to no node: whoever has it speaks for any; accepted on loopback only";
	_cleanup_(mo_freep) char *next =
		mo_printf("give each node its own: %s; then `moectl token revoke` this one",
			  own_token(d));
	struct json_object *t;

	if (is_reached(d->cli, d)) {
		state = "crit";
		words = "bound to no node: whoever has it speaks for any; it is refused but on "
			"loopback, and this controller serves other machines";
		if (is_old(d))
			words = "bound to no node: whoever has it speaks for any; controllers of "
				"later versions refuse it but on loopback, and this one serves "
				"other machines";
	}
	for (size_t i = 0; (t = next_token(d, &i));)
		if (mo_streq(js_str(t, "role"), "agent") && !js_str(t, "user"))
			add(d, state, js_str(t, "id"), next, "%s", words);
}

static bool node_known(const struct doctor *d, const char *name)
{
	struct json_object *items = js_items(d->docs[DOC_NODES]);

	for (size_t i = 0; name && i < js_len(items); i++)
		if (mo_streq(js_str(js_at(items, i), "name"), name))
			return true;
	return false;
}

/* An agent renews at half: one of its tokens that has little left was not renewed. */
static void expiry(struct doctor *d)
{
	int64_t now = mo_clock_wall_us();
	struct json_object *t;

	for (size_t i = 0; (t = next_token(d, &i));) {
		const char *until = js_str(t, "expires_at"), *role = js_str(t, "role"),
			   *user = js_str(t, "user"), *id = js_str(t, "id");
		bool agent = mo_streq(role, "agent") && user;

		if (mo_streq(role, "join"))
			continue;
		if (!until)
			add(d, "warn", id,
			    "make one that ends (`moectl token create`), then `moectl token "
			    "revoke` this one",
			    "%s token of %s never ends", text_or(role), user ? user : "no node");
		else if (before(until, now) && agent && node_known(d, user))
			add(d, "crit", user, own_token(d),
			    "its token %s expired at %s: it gets no new work", text_or(id), until);
		else if (!before(until, now) && before(until, now + SOON_US))
			add(d, "warn", agent ? user : id,
			    agent ? "is its agent of this version, and up? `moectl why NODE`"
				  : "`moectl token create`",
			    "%s token %s ends at %s", text_or(role), text_or(id), until);
	}
}

/* ---- nodes ---- */

static struct json_object *next_node(const struct doctor *d, size_t *i)
{
	struct json_object *items = js_items(d->docs[DOC_NODES]), *n;

	while ((n = js_at(items, (*i)++)))
		if (!d->node || mo_streq(js_str(n, "name"), d->node))
			return n;
	return NULL;
}

static void nodes(struct doctor *d)
{
	struct json_object *n;

	for (size_t i = 0; (n = next_node(d, &i));) {
		struct json_object *checks = js_get(n, "checks");

		for (size_t k = 0; k < js_len(checks); k++) {
			struct json_object *c = js_at(checks, k);
			const char *state = js_str(c, "state"), *next = js_str(c, "next");
			if (mo_streq(state, "failed") || mo_streq(state, "crit"))
				add(d, "crit", js_str(n, "name"),
				    next ? next : "`moectl why` says more of it", "%s: %s",
				    text_or(js_str(c, "check")), text_or(js_str(c, "text")));
		}
	}
}

/* What its first days keep from being a cordon. */
static void learning(struct doctor *d)
{
	struct json_object *n;

	for (size_t i = 0; (n = next_node(d, &i));)
		if (js_str(n, "would_cordon"))
			add(d, "warn", js_str(n, "name"), js_str(n, "would_next"), "%s",
			    js_str(n, "would_cordon"));
}

/* What its agent cannot keep apart. */
static void walls(struct doctor *d)
{
	struct json_object *found = js_get(d->docs[DOC_NODE], "checks");

	for (size_t i = 0; i < js_len(found); i++) {
		struct json_object *c = js_at(found, i);
		const char *id = js_str(c, "check");

		if ((mo_streq(id, "host.device_walls") || mo_streq(id, "host.step_namespace")) &&
		    !mo_streq(js_str(c, "state"), "ok"))
			add(d, "warn", d->node, js_str(c, "next"), "%s: %s", id,
			    text_or(js_str(c, "text")));
	}
}

static void versions(struct doctor *d)
{
	const char *own = js_str(d->docs[DOC_CLUSTER], "version"), *version;
	struct json_object *n;

	for (size_t i = 0; (n = next_node(d, &i));)
		if ((version = js_str(n, "version")) && own && strcmp(version, own))
			add(d, "warn", js_str(n, "name"),
			    "install the same version on both; steps run on meanwhile",
			    "its agent is %s, the controller %s", version, own);
}

static const struct check checks[] = {
	{ "token.unbound", "every agent's token is bound to its node",
	  1u << DOC_TOKENS | 1u << DOC_NODES | 1u << DOC_CLUSTER, unbound },
	{ "token.expiry", "no token has expired in use, ends within a week, or never",
	  1u << DOC_TOKENS | 1u << DOC_NODES | 1u << DOC_CLUSTER, expiry },
	{ "node.checks", "the controller hears every node and gives it work", 1u << DOC_NODES,
	  nodes },
	{ "node.learning", "nothing would cordon a node that is new", 1u << DOC_NODES, learning },
	{ "node.walls", "its jobs are kept apart: devices, and what a killed one leaves",
	  1u << DOC_NODE, walls },
	{ "node.version", "agents and controller have one version",
	  1u << DOC_NODES | 1u << DOC_CLUSTER, versions },
};

/* ---- running them ---- */

/* A document that this caller may not see is no error: checks that need it are unknown. */
static int fetch(struct cli *cli, struct doctor *d, int which)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = which == DOC_NODE && d->node ? url_quote(d->node) : NULL;
	_cleanup_(mo_freep) char *path = mo_printf("%s%s", paths[which], quoted ? quoted : "");
	const struct request q = { .path = path };

	if (which == DOC_NODE && (!d->node || !node_known(d, d->node)))
		return 0;
	int r = client_send(cli, &q, &a);

	d->statuses[which] = a.status;
	if (r || a.status == 403)
		return r;
	answer_done(&a);
	r = which == DOC_CLUSTER || which == DOC_NODE ? client_get(cli, NULL, &a, "%s", path)
						      : client_get_all(cli, NULL, &a, "%s", path);
	if (!r)
		d->docs[which] = json_object_get(a.doc);
	return r;
}

static void examine(struct doctor *d, const struct check *c)
{
	if (c->documents & 1u << DOC_NODE && !d->node)
		return;
	d->now = c;
	d->n_before = json_object_array_length(d->found);
	for (int i = 0; i < _DOC_N; i++)
		if (c->documents & 1u << i && !d->docs[i]) {
			add(d, "unknown", d->node,
			    "ask with a token of role admin, or as root on the controller",
			    "GET %s is not allowed for you", paths[i]);
			return;
		}
	c->check(d);
	if (json_object_array_length(d->found) == d->n_before)
		add(d, "ok", d->node, NULL, "%s", c->fine);
}

static int show(const struct cli *cli, struct json_object *found)
{
	static const struct column columns[] = { { "CHECK", "check" },
						 { "OBJECT", "object" },
						 { "STATE", "state" },
						 { "TEXT", "text" },
						 { "NEXT", "next" } };

	if (!cli->json) {
		print_table(cli, columns, ELEMENTSOF(columns), found);
		return CLI_OK;
	}
	_cleanup_(mo_freep) char *text =
		mo_printf("{\"items\":%s}",
			  json_object_to_json_string_ext(found,
							 JSON_C_TO_STRING_PLAIN |
								 JSON_C_TO_STRING_NOSLASHESCAPE));
	print_json(text, strlen(text));
	return CLI_OK;
}

/* The controller knows the words for it. */
static int no_such_node(struct cli *cli, const char *name)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = url_quote(name);

	return client_get(cli, name, &a, "/v1/nodes/%s", quoted);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *image = NULL, *user = NULL;
	const struct opt opts[] = { { "image", 0, OPT_STR, &image },
				    { "user", 0, OPT_STR, &user } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);

	if (r)
		return cli_stop(r);
	if (image && !args[0])
		return cli_misuse(cli, "--image is looked at by a node: name it");
	if (user && !image)
		return cli_misuse(cli, "--user says as whom an image is looked at: give --image");
	if (image)
		return doctor_image(cli, args[0], image, user);
	struct doctor d = { .cli = cli, .node = args[0], .found = json_object_new_array() };
	for (int i = 0; i < _DOC_N && !r; i++)
		r = fetch(cli, &d, i);
	if (!r && d.node && !node_known(&d, d.node))
		r = no_such_node(cli, d.node);
	for (size_t i = 0; i < ELEMENTSOF(checks) && !r; i++)
		examine(&d, &checks[i]);
	if (!r)
		r = show(cli, d.found);
	for (int i = 0; i < _DOC_N; i++)
		json_object_put(d.docs[i]);
	json_object_put(d.found);
	return r ? r : d.crit ? CLI_FAILED : CLI_OK;
}

const struct verb verb_doctor = {
	"doctor",
	"Cluster",
	"doctor [NODE [--image IMAGE]]",
	"what is not as it should be: tokens, nodes, versions, and what to do",
	"  --image IMAGE   instead: would jobs in this image (dir:/PATH) run on NODE?\n"
	"  --user NAME     with --image: looked at as this account of the node (admins)\n"
	"States: ok, warn, crit (exit status 1), unknown (not allowed for you: tokens are for "
	"admins).\n"
	"With --image: ok, warn (jobs run, slower or not all), fail (exit status 1: they do not). "
	"The image is read, nothing of it is executed.\n",
	run,
	.examples = "  moectl doctor\n  moectl doctor n1 --image dir:/srv/images/primus\n",
};
