/* local up|down|status: a cluster on this machine, for trying things out and for tests. */
#include "cli/local.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/local_cluster.h"
#include "cli/local_proc.h"
#include "cli/local_steps.h"
#include "cli/local_up.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"

static struct json_object *string_or_null(const char *s)
{
	return s ? json_object_new_string(s) : NULL;
}

static struct json_object *pid_or_null(pid_t pid)
{
	return pid > 0 ? json_object_new_int64(pid) : NULL;
}

static struct json_object *step_doc(const struct local_step *s)
{
	struct json_object *o = json_object_new_object();
	_cleanup_(mo_freep) char *job = mo_printf("j-%lld", (long long)s->job);
	json_object_object_add(o, "job", json_object_new_string(job));
	json_object_object_add(o, "attempt", json_object_new_int64(s->attempt));
	json_object_object_add(o, "node", json_object_new_string(s->node));
	json_object_object_add(o, "pid", pid_or_null(s->pid));
	return o;
}

static struct json_object *local_status(const struct local *l)
{
	_cleanup_(mo_freep) char *url = local_url(l), *tcp = local_tcp_url(l),
				 *token = local_path(l, "tokens/admin.token");
	_cleanup_(local_steps_done) struct local_steps steps = { 0 };
	struct json_object *doc = json_object_new_object(), *moed = json_object_new_object(),
			   *agents = json_object_new_array(), *list = json_object_new_array();
	json_object_object_add(doc, "dir", json_object_new_string(l->dir));
	json_object_object_add(doc, "url", json_object_new_string(url));
	json_object_object_add(doc, "tcp_url", string_or_null(tcp));
	json_object_object_add(doc, "token_file", json_object_new_string(token));
	json_object_object_add(moed, "pid", pid_or_null(local_pid(l, "moed")));
	json_object_object_add(doc, "moed", moed);
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i);
		struct json_object *a = json_object_new_object();
		json_object_object_add(a, "node", json_object_new_string(node));
		json_object_object_add(a, "pid", pid_or_null(local_pid(l, node)));
		json_object_array_add(agents, a);
	}
	json_object_object_add(doc, "agents", agents);
	local_steps(l, &steps);
	for (size_t i = 0; i < steps.n; i++)
		/* the directory of a dead supervisor stays until the controller has read its end */
		if (steps.items[i].pid)
			json_object_array_add(list, step_doc(&steps.items[i]));
	json_object_object_add(doc, "steps", list);
	return doc;
}

/* The one of /v1/nodes that has this name. */
static struct json_object *node_of(struct json_object *nodes, const char *name)
{
	struct json_object *items = js_items(nodes), *n;
	for (size_t i = 0; (n = js_at(items, i)); i++)
		if (mo_streq(js_str(n, "name"), name))
			return n;
	return NULL;
}

/* Steps that run here and that the controller never stored, as it says itself. One that does not
 * answer says nothing: no step is marked, one way or the other. */
static void mark_unknown(struct cli *cli, const struct local *l, struct json_object *doc)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	const struct request q = { .path = "/v1/nodes?limit=1000", .timeout_ms = 2000 };
	struct json_object *steps = js_get(doc, "steps");
	free(cli->url);
	cli->url = local_url(l);
	if (!js_len(steps) || js_int(doc, "moed.pid") == MO_NONE || client_send(cli, &q, &a) ||
	    a.status != 200)
		return;
	for (size_t i = 0; i < js_len(steps); i++) {
		struct json_object *s = js_at(steps, i),
				   *names = js_get(node_of(a.doc, js_str(s, "node")),
						   "unknown_steps");
		_cleanup_(mo_freep) char *name =
			mo_printf("%s.a%lld", js_str(s, "job"), (long long)js_int(s, "attempt"));
		bool unknown = false;
		for (size_t k = 0; k < js_len(names); k++)
			unknown |= mo_streq(json_object_get_string(js_at(names, k)), name);
		json_object_object_add(s, "unknown", json_object_new_boolean(unknown));
	}
}

static void print_step(const struct cli *cli, struct json_object *s)
{
	const char *job = js_str(s, "job"), *attempt = text_int(js_int(s, "attempt"));
	printf("%-10s %s attempt %s on %s, supervisor %s", "step", job, attempt, js_str(s, "node"),
	       text_int(js_int(s, "pid")));
	if (json_object_get_boolean(js_get(s, "unknown")))
		printf("  %s: let it end, or `moectl resolve %s.a%s --kill`",
		       paint(cli, "31", "unknown to the controller"), job, attempt);
	printf("\n");
}

static void print_status(const struct cli *cli, struct json_object *doc)
{
	struct json_object *agents = js_get(doc, "agents"), *steps = js_get(doc, "steps");
	printf("%-10s %s\n%-10s %s\n%-10s %s  (token in %s)\n", "dir", js_str(doc, "dir"), "url",
	       js_str(doc, "url"), "tcp", text_or(js_str(doc, "tcp_url")),
	       js_str(doc, "token_file"));
	printf("%-10s %s\n", "moed",
	       js_int(doc, "moed.pid") == MO_NONE ? paint(cli, "31", "not running")
						  : text_int(js_int(doc, "moed.pid")));
	for (size_t i = 0; i < js_len(agents); i++) {
		int64_t pid = js_int(js_at(agents, i), "pid");
		printf("%-10s %s\n", js_str(js_at(agents, i), "node"),
		       pid == MO_NONE ? paint(cli, "31", "not running") : text_int(pid));
	}
	for (size_t i = 0; i < js_len(steps); i++)
		print_step(cli, js_at(steps, i));
}

static int status(struct cli *cli, struct local *l)
{
	struct json_object *doc = local_status(l);
	mark_unknown(cli, l, doc);
	if (cli->json)
		print_json_doc(doc);
	else
		print_status(cli, doc);
	json_object_put(doc);
	return CLI_OK;
}

/* The directory, absolute and without links (made when `up` needs it). 0 or an exit status;
 * CLI_NOT_FOUND is not printed. */
static int resolve_dir(const char *given, bool make, char **ret)
{
	_cleanup_(mo_freep) char *dir = given && *given ? mo_strdup(given) : local_default_dir();
	char real[PATH_MAX];
	if (!dir)
		return cli_fail(CLI_USAGE,
				"local: neither HOME nor XDG_STATE_HOME is set; give --dir DIR");
	int r = make ? mo_mkdir_p(dir, 0700, false) : 0;
	if (r < 0)
		return cli_fail(CLI_FAILED,
				"local: %s: %s; choose a directory that you may write with --dir",
				dir, strerror(-r));
	if (!realpath(dir, real))
		return errno == ENOENT || errno == ENOTDIR
			       ? CLI_NOT_FOUND
			       : cli_fail(CLI_FAILED, "local: %s: %m; check the path", dir);
	*ret = mo_strdup(real);
	return 0;
}

static int no_cluster(const char *verb, const char *dir)
{
	/* that is what was asked for, unless the directory is not the one that was meant */
	if (!strcmp(verb, "down")) {
		fprintf(stderr, "moectl: local: no cluster in %s: nothing to stop\n", dir);
		return CLI_OK;
	}
	return cli_fail(CLI_NOT_FOUND, "local: no cluster in %s; `moectl local up` makes one", dir);
}

static int locked(const struct local *l, int *ret_fd)
{
	_cleanup_(mo_freep) char *path = local_path(l, "lock");
	int fd = mo_lock_file(path);
	if (fd == -EWOULDBLOCK)
		return cli_fail(CLI_FAILED,
				"local: another `moectl local up` or `down` works on %s; wait for "
				"it",
				l->dir);
	if (fd < 0)
		return cli_fail(CLI_FAILED, "local: %s: %s; check its owner and free space", path,
				strerror(-fd));
	*ret_fd = fd;
	return 0;
}

struct wish {
	const char *dir, *topology;
	int64_t nodes, gpus, port;
};

/* False: the first up failed over its port, so that none is the cluster's yet. */
static bool was_bound(const struct local *l)
{
	_cleanup_(mo_freep) char *url = local_tcp_url(l);

	return url;
}

/* An existing cluster keeps its shape: a different wish is an error rather than ignored. */
static int agree(const struct local *l, const struct wish *w)
{
	if (w->nodes != MO_NONE && w->nodes != l->nodes)
		return cli_fail(CLI_FAILED,
				"local up: the cluster in %s has %lld nodes, not %lld; leave "
				"--nodes out, or choose another --dir",
				l->dir, (long long)l->nodes, (long long)w->nodes);
	if (w->gpus != MO_NONE && w->gpus != l->gpus_per_node)
		return cli_fail(CLI_FAILED,
				"local up: the cluster in %s has %lld GPU slots per node, not "
				"%lld; leave --gpus-per-node out, or choose another --dir",
				l->dir, (long long)l->gpus_per_node, (long long)w->gpus);
	if (w->port != MO_NONE && w->port && w->port != l->port && was_bound(l))
		return cli_fail(CLI_FAILED,
				"local up: the cluster in %s has port %lld, not %lld; leave --port "
				"out, or choose another --dir",
				l->dir, (long long)l->port, (long long)w->port);
	if (w->topology && !mo_streq(w->topology, l->topology))
		return cli_fail(CLI_FAILED,
				"local up: the cluster in %s has topology %s, not %s; leave "
				"--topology out, or choose another --dir",
				l->dir, text_or(l->topology), w->topology);
	return 0;
}

static int up(struct cli *cli, struct local *l, const struct wish *w, int known)
{
	if (!known) {
		if (agree(l, w))
			return CLI_FAILED;
		if (w->port != MO_NONE && !was_bound(l))
			l->port = w->port;
		return local_up(cli, l, w->port != MO_NONE);
	}
	l->nodes = w->nodes != MO_NONE ? w->nodes : 2;
	l->gpus_per_node = w->gpus != MO_NONE ? w->gpus : 2;
	l->port = w->port != MO_NONE ? w->port : 0;
	mo_str_set(&l->topology, w->topology);
	return local_up(cli, l, w->port != MO_NONE);
}

static int dispatch(struct cli *cli, const char *verb, const struct wish *w)
{
	_cleanup_(local_done) struct local l = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_closep) int lock = -1;
	bool is_up = !strcmp(verb, "up");
	local_defaults(&l);
	int r = resolve_dir(w->dir, is_up, &l.dir);
	if (r == CLI_NOT_FOUND) {
		_cleanup_(mo_freep) char *usual = w->dir ? NULL : local_default_dir();

		return no_cluster(verb, w->dir ? w->dir : usual);
	}
	if (r)
		return r;
	int known = local_load(&l, &err);
	if (known < 0 && known != -ENOENT)
		return cli_fail_error(CLI_FAILED, "local", &err, known);
	if (known == -ENOENT && !is_up)
		return no_cluster(verb, l.dir);
	if (!strcmp(verb, "status"))
		return status(cli, &l);
	if ((r = locked(&l, &lock)))
		return r;
	r = is_up ? up(cli, &l, w, known) : local_down(cli, &l);
	if (!r && cli->json && is_up)
		r = status(cli, &l);
	return r;
}

static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const verbs[] = { "up", "down", "status" };
	const char *args[1] = { NULL };
	struct wish w = { .nodes = MO_NONE, .gpus = MO_NONE, .port = MO_NONE };
	_cleanup_(mo_freep) char *topology = NULL;
	const struct opt opts[] = {
		{ "nodes", 0, OPT_INT, &w.nodes, 1, LOCAL_NODES_MAX },
		{ "gpus-per-node", 0, OPT_INT, &w.gpus, 1, MO_GPUS_PER_NODE_MAX },
		{ "topology", 0, OPT_STR, &w.topology },
		{ "dir", 0, OPT_STR, &w.dir },
		{ "port", 0, OPT_INT, &w.port, 0, 65535 },
	};
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if (strcmp(args[0], "up") && strcmp(args[0], "down") && strcmp(args[0], "status"))
		return cli_misuse_word(cli, args[0], verbs, ELEMENTSOF(verbs));
	if (w.topology) {
		char real[PATH_MAX];
		if (!realpath(w.topology, real))
			return cli_fail(CLI_USAGE,
					"local: topology %s: %m; give an hwloc XML file or a fake "
					"root directory",
					w.topology);
		w.topology = topology = mo_strdup(real);
	}
	return dispatch(cli, args[0], &w);
}

const struct verb verb_local = {
	"local",
	"Cluster",
	"local up [--nodes N] [--gpus-per-node G] [--topology XML|FAKEROOT] [--dir D] [--port P] | "
	"down [--dir D] | status [--dir D]",
	"a cluster on this machine, without root",
	"  --nodes N            agents, which share this machine's CPUs (2)\n"
	"  --gpus-per-node G    GPU slots of each (2); fake ones unless real GPUs are found\n"
	"  --topology PATH      hwloc XML or a fake root: place ranks as on that machine, bind "
	"nothing\n"
	"  --dir D              everything lies there (~/.local/state/moe/local); an existing one "
	"keeps its shape and port\n"
	"  --port P             TCP port on loopback; 0 = any free one (7070, or any free one when "
	"that is taken)\n",
	run,
	.examples = "  eval \"$(moectl local up)\"     the shell then talks to it\n"
		    "  moectl local up              again: starts what was killed; running jobs go "
		    "on\n",
};
