/* Life of the controller: store -> replay -> first turn (IN_START, durable) -> listeners -> loop.
 *
 * Called by daemon/main.c alone, with options that were read and checked. What stands in
 * manager.h is shared by all files of the shell; each of them owns its part (links, streams,
 * queries, ...), made in manager_start() and freed in manager_done(), in the other order.
 *
 * What never happens: a request that is served before the replay is over and the start is on disk
 * (so nobody hears of a state that a crash would take back); two controllers on one directory (the
 * store's lock is held for life); a start that skips what it cannot read: it fails with a sentence
 * that says what to do. */
#include "daemon/manager.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "daemon/agent_link.h"
#include "daemon/anchors.h"
#include "daemon/api_routes.h"
#include "daemon/api_signin.h"
#include "daemon/audit.h"
#include "daemon/auth.h"
#include "daemon/begin.h"
#include "daemon/core/rules/classify.h"
#include "daemon/core/state/clock.h"
#include "daemon/exec.h"
#include "daemon/fence.h"
#include "daemon/images.h"
#include "daemon/forked.h"
#include "daemon/input.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "daemon/node_config.h"
#include "daemon/helper.h"
#include "daemon/log_session.h"
#include "daemon/quota.h"
#include "daemon/sample_files.h"
#include "daemon/disk.h"
#include "daemon/snapshot.h"
#include "daemon/spec.h"
#include "daemon/streams.h"
#include "daemon/turn.h"
#include "daemon/webhooks.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"
#include "lib/model/limits.h"
#include "lib/recipe/failures_file.h"

static bool given(const char *s)
{
	return s && *s;
}

static void on_turn(void *arg)
{
	turn_run(arg);
}

/* From the second on at which the word's reading was taken. */
static void take_clock(struct manager *m, const struct clock_reading *r, struct clock_word *w)
{
	struct input *in = input_new(IN_CLOCK, NULL);

	mo_coretime_set(&m->time, w->now, r->boot);
	in->core.clock = mo_desc_new(&in_clock_desc);
	*in->core.clock = (struct in_clock){
		.boot_id = mo_strdup(r->boot_id),
		.boottime_us = r->boot,
		.synced = r->synced,
		.shift_us = w->shift,
		.told = TAKE_PTR(w->text),
	};
	input_push(m, in);
}

static struct clock_reading read_clocks(const struct manager *m)
{
	return (struct clock_reading){ .wall = mo_clock_wall_us(),
				       .boot = mo_clock_boot_us(),
				       .boot_id = m->boot_id,
				       .synced = mo_clock_synced() };
}

static void start_clock(struct manager *m)
{
	struct clock_word w;

	m->boot_id = mo_boot_id();
	struct clock_reading r = read_clocks(m);
	clock_at_start(manager_state(m), &r, &w);
	m->clock_reported = w.verdict == CLOCK_HELD;
	take_clock(m, &r, &w);
}

/* A time service may set the wall clock at any moment after the start, an operator too. */
static void check_clock(struct manager *m)
{
	struct clock_reading r = read_clocks(m);
	struct clock_word w;

	clock_in_run(manager_now(m), &r, &w);
	if (w.verdict == CLOCK_MOVED || (w.verdict == CLOCK_HELD && !m->clock_reported))
		take_clock(m, &r, &w);
	m->clock_reported |= w.verdict == CLOCK_HELD;
	free(w.text);
}

static void on_deadline(void *arg)
{
	struct manager *m = arg;

	mo_turn_arm(m->turn);
}

/* STATE/address: what is listened on, 0.0.0.0 included: only the caller knows by which name he
 * gets here. Written only when it listens. A full disk keeps nobody from starting: the file of
 * an earlier start, which may name another port, goes. */
static int write_address(struct manager *m, struct mo_error *err)
{
	const struct options *o = m->options;
	_cleanup_(mo_freep) char *path = mo_path(o->state_dir, "address");
	const char *host = given(o->listen) ? o->listen : "127.0.0.1";
	const char *scheme = given(o->tls_cert) ? "https" : "http";

	free(m->url);
	if (o->port < 0)
		m->url = mo_printf("unix:%s", o->unix_socket);
	else
		m->url = mo_printf(strchr(host, ':') ? "%s://[%s]:%lld" : "%s://%s:%lld", scheme,
				   host, (long long)http_server_port(m->http));
	_cleanup_(mo_freep) char *line = mo_printf("%s\n", m->url);
	int r = mo_write_file(path, line, strlen(line), 0644, false);
	m->address_due = r == -ENOSPC || r == -EDQUOT;
	if (!m->address_due)
		return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
	(void)mo_remove_at(AT_FDCWD, path, 0);
	mo_log(MO_ERR, NULL, NULL,
	       "%s: %s: it is written when there is room again; until then clients of this machine "
	       "find %s only by MOE_URL",
	       path, strerror(-r), m->url);
	return 0;
}

/* The turn that it arms checks for lateness and feeds the watchdog. */
static void on_pulse(void *arg)
{
	struct manager *m = arg;

	disk_check(m);
	if (m->address_due && !m->store_full)
		(void)write_address(m, NULL);
	check_clock(m);
	auth_bootstrap_renew(m);
	mo_turn_arm(m->turn);
}

static int signatures_read(struct manager *m, bool shipped, struct mo_error *err)
{
	struct failure_rules rules;
	int r;

	mo_desc_init(&failure_rules_desc, &rules);
	r = failures_load(shipped, &rules, err);
	if (r >= 0)
		r = classifier_new(&rules, &m->signatures, err);
	mo_desc_done(&failure_rules_desc, &rules);
	return r;
}

/* Without them it would take broken hardware for an error of its user. A slip in the site's file
 * keeps no controller from its jobs: those that it came with are there for that. */
static int signatures_load(struct manager *m, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error site = { 0 };

	if (signatures_read(m, false, &site) >= 0)
		return 0;
	if (signatures_read(m, true, err) < 0)
		return -EINVAL;
	mo_log(MO_ERR, NULL, NULL,
	       "%s: the signatures of failures that came with this version are used instead; "
	       "repair the file and restart moed",
	       site.text);
	return 0;
}

static int open_state(struct manager *m, struct mo_error *err)
{
	const struct options *o = m->options;
	struct core_config config = core_config_default;

	int r = begin_check(o->state_dir, err);
	if (r >= 0)
		r = store_open(o->state_dir, &m->store, err);
	if (r >= 0)
		r = begin_begun(o->state_dir, m->store, err);
	if (r < 0)
		return r;
	config.port_min = o->port_min;
	config.port_max = o->port_max;
	config.beat_us = o->beat_ms * 1000;
	config.pull_parallel = o->pull_parallel;
	config.suspect_us = o->suspect_ms * 1000;
	config.down_us = o->down_ms * 1000;
	config.hang_percent = o->hang_percent;
	config.exit_wait_us = o->exit_wait_us;
	config.learn_us = o->learn_us;
	config.history_us = o->history_us;
	config.powers_off = given(o->fence_command);
	r = signatures_load(m, err);
	if (r < 0)
		return r;
	m->core = core_new(&config);
	core_signatures(m->core, m->signatures);
	m->journal = journal_new();
	r = journal_replay(m->journal, m->core, m->store, err);
	if (r < 0)
		return r;
	return 0;
}

static int make_parts(struct manager *m, struct mo_error *err)
{
	int r = mo_turn_new(m->loop, on_turn, m, &m->turn);

	if (r >= 0)
		r = mo_timer_new(m->loop, on_deadline, m, &m->deadline);
	if (r >= 0)
		r = mo_timer_new(m->loop, on_pulse, m, &m->pulse);
	if (r >= 0)
		r = auth_new(m, &m->auth, err);
	if (r < 0)
		return r;
	audit_new(m);
	links_new(m);
	execs_new(m);
	image_questions_new(m);
	streams_new(m);
	queries_new(m);
	helpers_new(m);
	fences_new(m);
	webhooks_new(m);
	forks_new(m);
	node_configs_new(m);
	snapshots_new(m);
	sample_files_new(m);
	specs_new(m);
	signins_new(m);
	quotas_new(m);
	auth_reload(m);
	return 0;
}

/* The first turn runs before anybody can connect: a new epoch, and the tokens of a local
 * cluster. */
static int first_turn(struct manager *m, struct mo_error *err)
{
	bool local = given(m->options->bootstrap_tokens);
	int r = 0;

	start_clock(m);
	input_push(m, input_new(IN_START, NULL));
	disk_start(m);
	if (local && (r = auth_bootstrap(m, m->options->bootstrap_tokens, err)) < 0)
		return r;
	turn_run(m);
	if (m->fatal)
		return mo_error_set(err, -EIO, "the first records could not be stored");
	return local ? auth_bootstrap(m, m->options->bootstrap_tokens, err) : 0;
}

static char **split_names(const char *text)
{
	size_t n = 0;
	char **names = NULL;

	while (given(text)) {
		text += strspn(text, ", ");
		size_t length = strcspn(text, ", ");
		if (length == 0)
			break;
		_cleanup_(mo_freep) char *name = mo_strndup(text, length);
		mo_strs_add(&names, &n, name);
		text += length;
	}
	if (names)
		mo_strs_add(&names, &n, NULL);
	return names;
}

static void on_wrong(void *arg, const char *source, int64_t n)
{
	mo_log(MO_WARNING, "6d6f6500000000000000000000000011", NULL,
	       "%lld request%s with a wrong credential from %s", (long long)n, n == 1 ? "" : "s",
	       source);
}

static int listen_all(struct manager *m, struct mo_error *err)
{
	const struct options *o = m->options;

	m->routes = mo_alloc_array(n_api_routes, sizeof(*m->routes));
	for (size_t i = 0; i < n_api_routes; i++) {
		m->routes[i] = api_routes[i].route;
		m->routes[i].query = api_routes[i].query;
	}
	m->host_names = split_names(o->host_names);
	struct http_server_config config = {
		.routes = m->routes,
		.n_routes = n_api_routes,
		.arg = m,
		.authenticate = auth_secret,
		.alive = auth_alive,
		.peer = auth_peer,
		.refused = audit_refused,
		.unix_path = given(o->unix_socket) ? o->unix_socket : NULL,
		.tcp_address = given(o->listen) ? o->listen : "127.0.0.1",
		.tcp_port = o->port,
		.tls_cert_file = given(o->tls_cert) ? o->tls_cert : NULL,
		.tls_key_file = given(o->tls_key) ? o->tls_key : NULL,
		.host_names = (const char *const *)m->host_names,
		.idle_timeout_s = MO_MAX(o->idle_timeout_us / 1000000, 1),
		.max_connections = o->max_connections,
		.user_connections = MO_CONNECTIONS_PER_USER,
		.node_connections = MO_CONNECTIONS_PER_NODE,
		.admit_head = quota_admit_head,
		.admit = quota_admit,
		.on_wrong = on_wrong,
	};
	return http_server_new(m->loop, &config, &m->http, err);
}

int manager_open(struct manager *m, sd_event *loop, const struct options *o, struct mo_error *err)
{
	*m = (struct manager){ .options = o, .loop = loop };
	int r = open_state(m, err);
	if (r >= 0)
		r = make_parts(m, err);
	return r < 0 ? r : first_turn(m, err);
}

int manager_start(struct manager *m, sd_event *loop, const struct options *o, struct mo_error *err)
{
	int r = manager_open(m, loop, o, err);
	if (r >= 0)
		r = listen_all(m, err);
	if (r >= 0)
		r = write_address(m, err);
	if (r < 0)
		return r;
	turn_pulse(m);
	return 0;
}

void manager_done(struct manager *m)
{
	/* After a failure of the store nothing may be said any more, not even "stopping". */
	if (!m->fatal)
		m->http = http_server_free(m->http);
	inputs_done(m);
	/* In the reverse order of make_parts(): each may use what was made before it to the end.
	 * A session of logs takes back its questions from the links. */
	m->quotas = quotas_free(m->quotas);
	m->anchor_texts = anchor_texts_free(m->anchor_texts);
	mo_buf_done(&m->openapi);
	mo_buf_done(&m->recipe_schema);
	m->signins = signins_free(m->signins);
	m->specs = specs_free(m->specs);
	m->sample_files = sample_files_free(m->sample_files);
	m->snapshots = snapshots_free(m->snapshots);
	m->node_configs = node_configs_free(m->node_configs);
	m->forks = forks_free(m->forks);
	m->helpers = helpers_free(m->helpers);
	m->webhooks = webhooks_free(m->webhooks);
	m->fences = fences_free(m->fences);
	m->queries = queries_free(m->queries);
	m->streams = streams_free(m->streams);
	m->links = links_free(m->links);
	m->execs = execs_free(m->execs);
	m->image_questions = image_questions_free(m->image_questions);
	m->auth = auth_free(m->auth);
	m->audit = audit_free(m->audit);
	mo_timer_free(m->deadline);
	mo_timer_free(m->pulse);
	mo_turn_free(m->turn);
	core_free(m->core);
	m->signatures = classifier_free(m->signatures);
	m->journal = journal_free(m->journal);
	store_free(m->store);
	for (size_t i = 0; m->host_names && m->host_names[i]; i++)
		free(m->host_names[i]);
	free(m->host_names);
	free(m->routes);
	free(m->url);
	free(m->boot_id);
}
