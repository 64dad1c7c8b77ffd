/* Processes of a local cluster: daemons and the steps that they started (local_cluster.h says by
 * what they are known). */
#pragma once
#include <sys/types.h>
#include "cli/cli.h"
#include "cli/local_cluster.h"

/* name: "moed" or a node's name. */
pid_t local_pid(const struct local *l, const char *name); /* living daemon, 0 = none */
/* Makes the controller's state, once; blocks. */
int local_init(const struct local *l, const char *config, struct mo_error *err);
int local_start(const struct local *l, const char *name, const char *program, const char *config,
		pid_t *ret, struct mo_error *err);
bool local_ended(pid_t pid); /* also reaps our own child */
/* SIGTERM, wait_ms later SIGKILL; true when the process is gone. *ret_signal: which other signal
 * ended it, 0 none; may be NULL. */
bool local_stop(const struct local *l, const char *name, int64_t wait_ms, int *ret_signal);
/* last line that says why, "" none; caller frees */
char *local_log_tail(const struct local *l, const char *name);

struct local_step {
	int64_t job, attempt;
	char *node, *dir, *step_id;
	pid_t pid;
	int64_t pid_start; /* of the supervisor */
	int fd;            /* connection to it, -1 */
};
struct local_steps {
	struct local_step *items;
	size_t n;
};
/* A zombie is dead: where nobody reaps orphans (containers) killed daemons stay as zombies for
 * ever. */
bool local_alive(pid_t pid, int64_t start_time);
/* Who holds the flock on this file: /proc/locks names candidates by inode, the open descriptor
 * proves it. 0 = nobody (or nobody we may see). */
pid_t local_lock_holder(const char *path);
