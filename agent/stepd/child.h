/* The rank's side of the fork: from fork to exec, async-signal-safe calls only. Everything is
 * prepared before. */
#pragma once
#include <sched.h>
#include <sys/types.h>
#include "agent/stepd/child_found.h"
#include "lib/base/buf.h"
#include "lib/base/identity.h"

enum child_step {
	CHILD_NONE,
	CHILD_CGROUP,
	CHILD_SIGNALS,
	CHILD_NAMESPACE,
	CHILD_USER,
	CHILD_PARENT,
	CHILD_WORKDIR,
	CHILD_AFFINITY,
	CHILD_MEMORY,
	CHILD_DESCRIPTORS,
	CHILD_EXEC,
	_CHILD_STEP_N
};
extern const char *const child_step_names[_CHILD_STEP_N];
/* what comes through the CLOEXEC pipe, at once; nothing = exec succeeded */
struct child_failure {
	int32_t step, error;
	struct child_found found; /* CHILD_EXEC in an image; else empty */
};

struct child_plan {
	char *const *argv, *const *envp;
	/* absolute or relative paths tried in order, NULL-terminated */
	char *const *candidates;
	const char *workdir;
	/* workdir is not the recipe's: without one the rank begins in / */
	bool is_home;
	bool in_image; /* of the namespace */
	/* cgroup_fd: cgroup.procs, or -1; mnt_fd: a mount namespace, or -1; user_fd: the user
	 * namespace that this belongs to, 0: this process' own; root_fd: descriptor 3 of the
	 * program, 0 none */
	int in_fd, out_fd, err_fd, report_fd, cgroup_fd, mnt_fd, user_fd, root_fd;
	pid_t parent;
	const struct mo_identity *who;
	const cpu_set_t *cpus;
	size_t cpus_size; /* NULL = not bound */
	int mem_policy;   /* MPOL_* or -1 */
	const unsigned long *mem_nodes;
	unsigned long mem_bits;
};
/* "could not enter the working directory /x: No such file or directory"; object: what it is about,
 * may be "". In the parent; caller frees. */
char *child_problem(const struct child_failure *f, const char *object);
_Noreturn void child_run(const struct child_plan *p);
