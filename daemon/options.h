/* What moed.yaml and --set may say. */
#pragma once
#include "lib/base/options.h"

struct options {
	char *state_dir, *unix_socket, *listen;
	int64_t port;
	char *tls, *tls_cert, *tls_key, *host_names;
	int64_t port_min, port_max; /* rank_ports */
	int64_t beat_ms, suspect_ms, down_ms, exit_wait_us;
	int64_t pull_parallel, hang_percent, learn_us; /* health.learn */
	int64_t history_us, samples_max;               /* bytes */
	char *fence_command, *webhooks;
	int64_t max_connections, idle_timeout_us;
	char *bootstrap_tokens, *visibility;
	bool debug;
	char *quarantine, *put_back; /* asked for on the command line: quarantine.h */
	char *init, *restore;        /* asked for on the command line: begin.h */
};
extern const struct mo_options options_table;
/* Nobody from another machine can reach it. */
bool options_loopback(const struct options *o);
/* Options that contradict each other. Also decides *ret_plain: TCP off loopback without TLS
 * because the operator said so (to be warned about). */
int options_check(const struct options *o, bool *ret_plain, struct mo_error *err);
