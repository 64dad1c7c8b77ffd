/* The option table of moed, and the rules between options. */
#include "daemon/options.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/address.h"
#include "lib/base/fd.h"
#include "lib/base/secret.h"

static const char *const visibility_words[] = { "owner", "all", NULL };
static const char *const tls_words[] = { "required", "off", NULL };

#define HISTORY_LEAST_US (86400LL * 1000000)
#define O(field) offsetof(struct options, field)
static const struct mo_option items[] = {
	{ "state_dir", MO_OPTION_PATH, O(state_dir), "/var/lib/moe",
	  "Directory of the durable state; one controller at a time. Holds `address`, the bound "
	  "URL." },
	{ "unix_socket", MO_OPTION_PATH, O(unix_socket), "/run/moe/moed.sock",
	  "UNIX socket: root and moed's own user are admin there, everybody else is role user "
	  "under his login name." },
	{ "listen", MO_OPTION_STR, O(listen), "127.0.0.1",
	  "Numeric address of the TCP listener; anything but loopback needs tls_cert and "
	  "tls_key." },
	{ "port", MO_OPTION_INT, O(port), "7070",
	  "TCP port; 0 = any free one (see state_dir/address), -1 = no TCP.", .min = -1,
	  .max = 65535 },
	{ "tls", MO_OPTION_WORD, O(tls), "required",
	  "required: off loopback only with TLS. off: for a proxy in front that ends TLS; moectl "
	  "and agents send nothing over http:// to anything but loopback.",
	  .words = tls_words },
	{ "tls_cert", MO_OPTION_PATH, O(tls_cert), NULL, "PEM file with the certificate chain." },
	{ "tls_key", MO_OPTION_PATH, O(tls_key), NULL,
	  "PEM file with the private key, which nobody else may read (0600, or 0640 of root)." },
	{ "host_names", MO_OPTION_STR, O(host_names), NULL,
	  "Names under which clients reach this controller besides its host name, separated by "
	  "commas (other Host headers are refused)." },
	{ "rank_ports", MO_OPTION_RANGE, O(port_min), "20000-29999",
	  "Ports for MASTER_PORT; four in a row for each attempt.", .min = 1024, .max = 65535 },
	{ "beat_ms", MO_OPTION_INT, O(beat_ms), "1000", "Agents report at least this often.",
	  .min = 50, .max = 60000 },
	{ "suspect_ms", MO_OPTION_INT, O(suspect_ms), "2200",
	  "Silence after which a node is suspect.", .min = 100, .max = 600000 },
	{ "down_ms", MO_OPTION_INT, O(down_ms), "10000",
	  "Silence after which a node is down. Silence alone never restarts anything.", .min = 200,
	  .max = 3600000 },
	{ "exit_wait", MO_OPTION_DURATION, O(exit_wait_us), "300s",
	  "One rank's exit 0 waits this long for the others.", .min = 1000000,
	  .max = 86400LL * 1000000 },
	{ "hang_percent", MO_OPTION_INT, O(hang_percent), "100",
	  "Least times after which a job counts as hanging (docs/failures.md), in percent of what "
	  "is documented: more where file systems or compilers are slow.",
	  .min = 1, .max = 100000 },
	{ "health.learn", MO_OPTION_DURATION, O(learn_us), "7d",
	  "So long, from when a node is first heard or until 'moectl ack NODE', findings of checks "
	  "that never met real hardware of its kind (docs/health.md) are reported and do not "
	  "cordon. "
	  "0s: never.",
	  .max = 3650LL * 86400 * 1000000 },
	{ "history", MO_OPTION_DURATION, O(history_us), "90d",
	  "A job that ended longer ago, and events of then, are forgotten, unless something still "
	  "needs them (docs/operator.md). Of ended jobs the newest 100,000 are kept at most. 0s: "
	  "however old they are.",
	  .max = 3650LL * 86400 * 1000000 },
	{ "samples_max", MO_OPTION_SIZE, O(samples_max), "1G",
	  "Disk for the samples of all iterations (state_dir/samples): beyond it the oldest files "
	  "go, of each job the newest 10,000 iterations stay. 0: no such files.",
	  .max = 1LL << 50 },
	{ "pull_parallel", MO_OPTION_INT, O(pull_parallel), "32",
	  "So many nodes fetch images at once, at most: what stands between a large job and its "
	  "registry.",
	  .min = 1, .max = 100000 },
	{ "fence_command", MO_OPTION_PATH, O(fence_command), NULL,
	  "Program of the site that powers a silent node off, for jobs with on_node_loss: spare: "
	  "called with the node's name, within two minutes; its exit status 0 says that the "
	  "machine is off, which it has read back. Empty: none." },
	{ "webhooks", MO_OPTION_PATH, O(webhooks), NULL,
	  "YAML file with the receivers that events are posted to, such as chats; nobody else may "
	  "read it (0600, or 0640 of root). A reload of moed reads it anew; another name of it "
	  "wants a restart. Empty: none." },
	{ "max_connections", MO_OPTION_INT, O(max_connections), "16000",
	  "HTTP connections for each listener; bounded by LimitNOFILE too.", .min = 16,
	  .max = 1000000 },
	{ "idle_timeout", MO_OPTION_DURATION, O(idle_timeout_us), "30s",
	  "Clients that have not sent a whole request by then are cut off.", .min = 1000000,
	  .max = 3600LL * 1000000 },
	{ "bootstrap_tokens", MO_OPTION_PATH, O(bootstrap_tokens), NULL,
	  "Directory in which moed keeps admin.token and agent.token (0600) for local clusters; "
	  "made when they are missing, and anew at half of their life. Empty: none." },
	{ "visibility", MO_OPTION_WORD, O(visibility), "owner",
	  "Who sees logs, environment, arguments and lines of output of a job. owner: its owner "
	  "and operators. all: everybody who may read. Names, states and numbers are for "
	  "everybody.",
	  .words = visibility_words },
	{ "debug", MO_OPTION_BOOL, O(debug), "false", "Log more." },
};
static const struct mo_action actions[] = {
	{ "quarantine", NULL, O(quarantine),
	  "takes out of the state what cannot be read of it, with the jobs that it belongs to, "
	  "into state_dir/quarantine, and ends" },
	{ "put-back", "FILE", O(put_back),
	  "puts what a file of state_dir/quarantine holds back into the state, and ends" },
	{ "init", NULL, O(init), "makes the state of a new controller in state_dir, and ends" },
	{ "restore", "FILE", O(restore),
	  "puts the state of a backup (moectl backup) into an empty state_dir, and ends" },
};
const struct mo_options options_table = { items, ELEMENTSOF(items), actions, ELEMENTSOF(actions) };

static bool empty(const char *s)
{
	return !s || !*s;
}

bool options_loopback(const struct options *o)
{
	return o->port < 0 || empty(o->listen) || mo_address_loopback(o->listen);
}

int options_check(const struct options *o, bool *ret_plain, struct mo_error *err)
{
	if (empty(o->state_dir))
		return mo_error_set(err, -EINVAL, "state_dir: is empty: name a directory");
	if (empty(o->unix_socket) && o->port < 0)
		return mo_error_set(err, -EINVAL,
				    "unix_socket and port: both are off, nobody could connect: set "
				    "one of them");
	if (empty(o->tls_cert) != empty(o->tls_key))
		return mo_error_set(err, -EINVAL,
				    "tls_cert and tls_key: only one is given: give both or none");
	if (o->suspect_ms <= o->beat_ms)
		return mo_error_set(err, -EINVAL,
				    "suspect_ms: %lld is not above beat_ms (%lld): every node "
				    "would be suspect between two beats",
				    (long long)o->suspect_ms, (long long)o->beat_ms);
	if (o->down_ms <= o->suspect_ms)
		return mo_error_set(err, -EINVAL, "down_ms: %lld is not above suspect_ms (%lld)",
				    (long long)o->down_ms, (long long)o->suspect_ms);
	if (o->history_us && o->history_us < HISTORY_LEAST_US)
		return mo_error_set(err, -EINVAL,
				    "history: is below 1d: whoever asks in the morning what became "
				    "of a job would find nothing; 0s keeps them however old they "
				    "are");
	if (o->port_max - o->port_min < 3)
		return mo_error_set(err, -EINVAL, "rank_ports: at least four ports are needed");
	if (!empty(o->fence_command) && mo_access(o->fence_command, X_OK) < 0)
		return mo_error_set(err, -EINVAL, "fence_command: %s: %s", o->fence_command,
				    strerror(errno));
	bool plain = !options_loopback(o) && empty(o->tls_cert);
	if (plain && strcmp(o->tls, "off") != 0)
		return mo_error_set(err, -EINVAL,
				    "listen: %s is not loopback and there is no TLS: set tls_cert "
				    "and tls_key (or tls: off where nobody can listen)",
				    o->listen);
	int r = empty(o->tls_key) ? 0 : mo_secret_check(o->tls_key, err);
	*ret_plain = plain;
	/* whether it can be read and fits is said where it is read */
	return r == -EPERM ? r : 0;
}
