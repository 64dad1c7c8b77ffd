/* What a launch becomes on this node: the spool entry, as a value. The agent's shell writes it. */
#pragma once
#include "agent/core/stepd/spool.h"

/* What this node gives to any step, and the names that are this step's. All borrowed. */
struct node_terms {
	const char *node, *boot_id, *step_id, *log_dir;
	const char *cgroup; /* NULL: none */
	const char *tmpdir;
	const char *layer; /* for what ranks in an image write */
	const char *images_dir;
	const char *runtimes; /* of agent.yaml: names between commas; NULL: none */
	const struct nodeinfo *info;
	const char *devices_root; /* NULL: / */
	bool allow_root;          /* granted where the launch has it, too */
	bool squashfs;            /* of agent.yaml */
	bool own_namespace;       /* this agent's supervisors may make one */
	int64_t min_uid, log_bytes, nofile, memlock_bytes, core_bytes;
	/* of a step that has all GPUs; -1: no limit */
	int64_t memory_bytes, pids;
	/* of each NUMA node; the launch's own, where that is more */
	int64_t reserve_cores;
};
/* Another step of this node, with what it was bound to. over: no process of it is left. */
struct neighbour {
	const struct rank_bind *binds;
	size_t n_binds;
	bool over;
};
/* CPUs of those that live; caller frees. */
char *spool_taken(const struct neighbour *others, size_t n);
/* ret is empty before. A binding that cannot be planned is named by ret->bind_error: its supervisor
 * refuses the step with it. */
void spool_make(const struct command *c, const struct node_terms *terms,
		const struct neighbour *others, size_t n_others, struct spool *ret);
