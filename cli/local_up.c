/* local up: configuration, start, wait until every agent is up. Running daemons are left alone;
 * what fails is stopped again, what ran before is not. */
#include "cli/local_up.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/interrupt.h"
#include "cli/local_logout.h"
#include "cli/local_probe.h"
#include "cli/local_proc.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/idset.h"
#include "lib/base/proc.h"

#define UP_LIMIT_US (30 * 1000000LL)
#define POLL_MS 20
#define DEFAULT_PORT 7070
#define RANK_PORT_MIN 20000
#define RANK_PORT_MAX 29999
#define RANK_PORT_STARTS 2000

/* What `up` did, to be undone when it fails. */
struct started {
	bool moed;
	bool agent[LOCAL_NODES_MAX];
	int64_t since_us[LOCAL_NODES_MAX];
};

static bool port_free(int64_t port)
{
	_cleanup_(mo_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

/* The cores of this machine (CPU lists of one core each), in NUMA order. */
struct cores {
	char **items;
	size_t n;
};

static void cores_done(struct cores *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->items[i]);
	free(c->items);
}

MO_DEFINE_DONE(nodeinfo)

/* Cores of this machine (none for a simulated one) and, the first time, whether it has GPUs
 * enough for all slots. Every node of a simulated cluster is such a machine of its own. */
static int probe_machine(struct local *l, struct cores *cores, bool count_gpus,
			 struct mo_error *err)
{
	struct stat st;
	bool is_root = l->topology && stat(l->topology, &st) == 0 && S_ISDIR(st.st_mode);
	int64_t wanted = l->topology ? l->gpus_per_node : l->nodes * l->gpus_per_node;
	_cleanup_(nodeinfo_done) struct nodeinfo info;
	mo_desc_init(&nodeinfo_desc, &info);
	int r = local_probe(l, is_root, count_gpus, &info, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < info.n_numa && !l->topology; i++) {
		_cleanup_(mo_freep) char *list =
			mo_strdup(info.numa[i].cores ? info.numa[i].cores : "");
		for (char *rest = list, *core; rest && (core = strsep(&rest, ";"));)
			if (*core)
				mo_strs_add(&cores->items, &cores->n, core);
	}
	if (count_gpus && (int64_t)info.n_gpus >= wanted)
		l->found_gpus = (int64_t)info.n_gpus;
	else if (count_gpus && info.n_gpus)
		fprintf(stderr,
			"moectl: local up: %s has %zu GPUs, fewer than the %lld slots: these are "
			"fake; choose --nodes and --gpus-per-node to use the GPUs\n",
			l->topology ? l->topology : "this machine", info.n_gpus, (long long)wanted);
	return 0;
}

/* CPUs of agent i: its share of whole cores; with fewer cores than agents they are shared. NULL
 * = no core known: the agent takes what it may use. */
static char *cpus_of(const struct cores *cores, int64_t i, int64_t n)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	size_t total = cores->n, first, last;
	if (!total)
		return NULL;
	first = total * (size_t)i / (size_t)n;
	last = total * ((size_t)i + 1) / (size_t)n;
	if (total < (size_t)n) {
		first = (size_t)i % total;
		last = first + 1;
	}
	for (size_t c = first; c < last; c++) {
		_cleanup_(mo_idset_done) struct mo_idset core = { 0 };
		if (mo_idset_parse(cores->items[c], &core) == 0)
			mo_idset_or(&set, &core);
	}
	return mo_idset_format(&set);
}

/* Several local clusters of one machine share its ports, and two supervisors may hold the same
 * one (it is bound, not listening): each cluster begins somewhere else. */
static int64_t first_rank_port(const struct local *l)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	for (const char *p = l->dir; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	return RANK_PORT_MIN + 4 * (int64_t)((h >> 16) % RANK_PORT_STARTS);
}

static int write_moed(const struct local *l, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = local_path(l, "moed.yaml");
	mo_buf_printf(&b,
		      "# Written by `moectl local up`.\nstate_dir: %s/moed\nunix_socket: "
		      "%s/moed.sock\nlisten: 127.0.0.1\nport: %lld\nbootstrap_tokens: "
		      "%s/tokens\nrank_ports: %lld-%d\n",
		      l->dir, l->dir, (long long)l->port, l->dir, (long long)first_rank_port(l),
		      RANK_PORT_MAX);
	return local_write(path, b.data, b.len, err);
}

static int write_agent(const struct local *l, int64_t i, const char *node, const char *cpus,
		       struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = local_path(l, "nodes/%s.yaml", node);
	mo_buf_printf(&b,
		      "# Written by `moectl local up`.\ncontroller: unix:%s/moed.sock\ntoken_file: "
		      "%s/tokens/agent.token\nnode: %s\naddress: 127.0.0.1\n",
		      l->dir, l->dir, node);
	mo_buf_printf(&b,
		      "state_dir: %s/state/%s\nruntime_dir: %s/run/%s\ngpus: %lld\nonly_fake_gpus: "
		      "%s\nuse_systemd: no\n",
		      l->dir, node, l->dir, node, (long long)l->gpus_per_node,
		      l->found_gpus ? "false" : "true");
	if (l->found_gpus) {
		int64_t first = l->topology ? 0 : i * l->gpus_per_node;
		mo_buf_printf(&b, "use_gpus: %lld-%lld\n", (long long)first,
			      (long long)(first + l->gpus_per_node - 1));
	}
	if (geteuid() == 0)
		mo_buf_str(&b, "allow_root: true\nimage_user: root\n");
	if (l->topology)
		mo_buf_printf(&b, "topology: %s\n", l->topology);
	else if (cpus)
		mo_buf_printf(&b, "cpus: %s\n", cpus);
	return local_write(path, b.data, b.len, err);
}

static int write_all(struct local *l, bool first_time, struct mo_error *err)
{
	static const char *const dirs[] = { "log", "pid", "nodes", "tokens", "moed" };
	_cleanup_(cores_done) struct cores cores = { 0 };
	int r = 0;
	for (size_t i = 0; i < ELEMENTSOF(dirs) && r == 0; i++) {
		_cleanup_(mo_freep) char *path = local_path(l, "%s", dirs[i]);
		if ((r = mo_mkdir_p(path, 0700, false)) < 0)
			return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	}
	if (first_time || !l->topology)
		r = probe_machine(l, &cores, first_time, err);
	for (int64_t i = 0; i < l->nodes && r >= 0; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i),
					 *cpus = cpus_of(&cores, i, l->nodes),
					 *state = local_path(l, "state/%s", node),
					 *run = local_path(l, "run/%s", node);
		if ((r = mo_mkdir_p(state, 0700, false)) < 0 ||
		    (r = mo_mkdir_p(run, 0700, false)) < 0)
			return mo_error_set(err, r, "%s: %s", run, strerror(-r));
		r = write_agent(l, i, node, cpus, err);
	}
	return r < 0 ? r : write_moed(l, err);
}

/* One request over the socket; status 0 = no answer yet. */
static struct json_object *ask(struct cli *cli, const char *path, int *ret_status)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	const struct request q = { .path = path, .timeout_ms = 2000 };
	*ret_status = 0;
	if (client_send(cli, &q, &a))
		return NULL;
	*ret_status = a.status;
	return a.status == 200 ? json_object_get(a.doc) : NULL;
}

static int died(const struct local *l, const char *name, struct mo_error *err)
{
	_cleanup_(mo_freep) char *tail = local_log_tail(l, name);
	return mo_error_set(err, -ECHILD, "%s ended at once: %s (log: %s/log/%s.log)", name,
			    *tail ? tail : "no output", l->dir, name);
}

static int late(const struct local *l, const char *name, const char *what, struct mo_error *err)
{
	_cleanup_(mo_freep) char *tail = local_log_tail(l, name);
	return mo_error_set(err, -ETIMEDOUT, "%s %s within %lld s: %s (log: %s/log/%s.log)", name,
			    what, UP_LIMIT_US / 1000000, *tail ? tail : "its log says nothing",
			    l->dir, name);
}

static int wait_moed(struct cli *cli, const struct local *l, pid_t pid, int64_t end,
		     struct mo_error *err)
{
	for (;;) {
		int status;
		/* not readyz: with a full disk it serves as well */
		json_object_put(ask(cli, "/healthz", &status));
		if (status == 200)
			return 0;
		if (local_ended(pid))
			return died(l, "moed", err);
		if (mo_clock_boot_us() > end)
			return late(l, "moed", "was not ready", err);
		if (interrupt_wait(POLL_MS))
			return mo_error_set(err, -EINTR, "interrupted");
	}
}

/* The port that was bound becomes the cluster's for good. */
static int keep_port(struct local *l, struct mo_error *err)
{
	_cleanup_(mo_freep) char *tcp = local_tcp_url(l);
	const char *colon = tcp ? strrchr(tcp, ':') : NULL;
	if (l->port)
		return 0;
	if (!colon)
		return mo_error_set(err, -EPROTO, "moed wrote no %s/moed/address", l->dir);
	for (colon++; *colon >= '0' && *colon <= '9'; colon++)
		l->port = l->port * 10 + (*colon - '0');
	int r = local_save(l, err);
	return r < 0 ? r : write_moed(l, err);
}

static int up_moed(struct cli *cli, struct local *l, bool port_given, struct started *s,
		   int64_t end, struct mo_error *err)
{
	_cleanup_(mo_freep) char *config = local_path(l, "moed.yaml");
	pid_t pid = local_pid(l, "moed");
	int r = pid ? wait_moed(cli, l, pid, end, err) : 0;
	if (!pid || r == -ECHILD) { /* none, or one found just while it died */
		if (!port_given && !l->port && port_free(DEFAULT_PORT)) {
			l->port = DEFAULT_PORT;
			if ((r = local_save(l, err)) < 0 || (r = write_moed(l, err)) < 0)
				return r;
		}
		if ((r = local_start(l, "moed", "moed", config, &pid, err)) < 0)
			return r;
		s->moed = true;
		r = wait_moed(cli, l, pid, end, err);
	}
	return r < 0 ? r : keep_port(l, err);
}

/* Up, and heard since this `up` looked: an entry that a restarted controller read from its store
 * does not count. */
static bool node_is_up(struct cli *cli, const char *node, int64_t since_us)
{
	_cleanup_(mo_freep) char *path = mo_printf("/v1/nodes/%s", node);
	int status;
	struct json_object *doc = ask(cli, path, &status);
	const char *state = js_str(doc, "state");
	int64_t age_ms = js_int(doc, "heartbeat_age_ms");
	bool up =
		state &&
		(!strcmp(state, "up") || !strcmp(state, "draining") || !strcmp(state, "drained")) &&
		age_ms != MO_NONE && age_ms * 1000 < mo_clock_boot_us() - since_us;
	json_object_put(doc);
	return up;
}

static int start_agent(const struct local *l, int64_t i, struct started *s, struct mo_error *err)
{
	_cleanup_(mo_freep) char *node = local_node(l, i),
				 *config = local_path(l, "nodes/%s.yaml", node);
	pid_t pid;
	int r = local_start(l, node, "moe-agent", config, &pid, err);
	s->agent[i] = r >= 0;
	return r;
}

static int wait_agents(struct cli *cli, const struct local *l, struct started *s, int64_t end,
		       struct mo_error *err)
{
	for (int64_t i = 0; i < l->nodes;) {
		_cleanup_(mo_freep) char *node = local_node(l, i);
		bool up = node_is_up(cli, node, s->since_us[i]);
		pid_t pid = local_pid(l, node);
		if (!pid || local_ended(pid)) {
			/* one found just while it died is replaced */
			int r = s->agent[i] ? died(l, node, err) : start_agent(l, i, s, err);
			if (r < 0)
				return r;
			s->since_us[i] = mo_clock_boot_us();
			/* one that dies may have been heard a moment ago */
		} else if (up && !mo_proc_sigkill_pending(pid)) {
			i++;
			continue;
		}
		if (mo_clock_boot_us() > end)
			return late(l, node, "did not register", err);
		if (interrupt_wait(POLL_MS))
			return mo_error_set(err, -EINTR, "interrupted");
	}
	return 0;
}

static int up_agents(struct cli *cli, struct local *l, struct started *s, int64_t end,
		     struct mo_error *err)
{
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i);
		pid_t pid = local_pid(l, node);
		/* 0: both ran already: what the controller says of it is fresh */
		s->since_us[i] = pid && !s->moed ? 0 : mo_clock_boot_us();
		int r = pid ? 0 : start_agent(l, i, s, err);
		if (r < 0)
			return r;
	}
	return wait_agents(cli, l, s, end, err);
}

static void undo(const struct local *l, const struct started *s)
{
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i);
		if (s->agent[i])
			local_stop(l, node, 5000, NULL);
	}
	if (s->moed)
		local_stop(l, "moed", 5000, NULL);
}

/* A link that signs a browser in, made with the cluster's own token; NULL = there is none (a
 * controller of an older version). Caller frees. */
static char *sign_in_link(struct cli *cli, const struct local *l, const char *tcp)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf token = { 0 };
	_cleanup_(mo_freep) char *path = local_path(l, "tokens/admin.token");
	if (!tcp || mo_read_file(path, 4096, &token) < 0 || !token.len)
		return NULL;
	token.data[strcspn(token.data, "\r\n")] = 0;
	_cleanup_(mo_freep) char *header = mo_printf("Authorization: Bearer %s", token.data);
	const struct request q = { .method = "POST",
				   .path = "/v1/session/link",
				   .headers = (const char *const[]){ header, NULL },
				   .timeout_ms = 2000 };
	if (client_send(cli, &q, &a) || a.status != 201 || !js_str(a.doc, "path"))
		return NULL;
	return mo_printf("%s%s", tcp, js_str(a.doc, "path"));
}

/* A node that could not be looked at is up with fewer slots than asked for, and a job would wait
 * for them without end. */
static void warn_slots(struct cli *cli, const struct local *l)
{
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i),
					 *path = mo_printf("/v1/nodes/%s", node);
		int status;
		struct json_object *doc = ask(cli, path, &status);
		int64_t gpus = js_int(doc, "gpus");

		if (status == 200 && gpus < l->gpus_per_node)
			fprintf(stderr,
				"moectl: local up: %s has %lld of its %lld GPU slots; "
				"%s/log/%s.log says why\n",
				node, (long long)MO_MAX(gpus, 0), (long long)l->gpus_per_node,
				l->dir, node);
		json_object_put(doc);
	}
}

static void announce(struct cli *cli, const struct local *l)
{
	_cleanup_(mo_freep) char *url = local_url(l), *tcp = local_tcp_url(l),
				 *link = cli->json ? NULL : sign_in_link(cli, l, tcp);
	const char *logout = local_logout_note();
	if (cli->json)
		return;
	fprintf(stderr, "local cluster in %s: %lld node%s with %lld %s each\n", l->dir,
		(long long)l->nodes, l->nodes == 1 ? "" : "s", (long long)l->gpus_per_node,
		!l->found_gpus ? "GPU slots (fake: ranks run on CPUs)"
		: l->topology  ? "GPUs of a simulated machine"
			       : "GPUs");
	if (link)
		fprintf(stderr,
			"dashboard: %s   (signs a browser in, once and within 5 minutes; `moectl "
			"local up` prints another)\n",
			link);
	else
		fprintf(stderr, "dashboard: %s/\n", tcp ? tcp : "-");
	if (logout)
		fprintf(stderr, "note: %s\n", logout);
	warn_slots(cli, l);
	_cleanup_(mo_freep) char *recipe = mo_data_file("recipes/tiny-moe.yaml");
	if (recipe)
		fprintf(stderr, "next: moectl submit %s --watch\n", recipe);
	fflush(stderr);
	printf("export MOE_URL=%s\n", url);
}

int local_up(struct cli *cli, struct local *l, bool port_given)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct started s = { 0 };
	int64_t end = mo_clock_boot_us() + UP_LIMIT_US;
	_cleanup_(mo_freep) char *marker = local_path(l, "local.yaml"),
				 *socket_path = local_path(l, "moed.sock");
	bool first_time = access(marker, F_OK) < 0;
	if (strlen(socket_path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return cli_fail(CLI_USAGE,
				"local up: %s: longer than a UNIX socket's path may be; choose a "
				"shorter --dir",
				socket_path);
	mo_str_set(&cli->url, NULL);
	cli->url = local_url(l);
	interrupt_catch();
	int r = write_all(l, first_time, &err);
	if (r >= 0 && first_time) {
		_cleanup_(mo_freep) char *config = local_path(l, "moed.yaml");
		r = local_init(l, config, &err);
	}
	if (r >= 0)
		r = local_save(l, &err);
	if (r >= 0)
		r = up_moed(cli, l, port_given, &s, end, &err);
	if (r >= 0)
		r = up_agents(cli, l, &s, end, &err);
	if (r < 0) {
		undo(l, &s);
		return cli_fail(CLI_FAILED,
				"local up: %s; `moectl local down --dir %s` removes what is left",
				mo_error_text(&err, r), l->dir);
	}
	announce(cli, l);
	return CLI_OK;
}
