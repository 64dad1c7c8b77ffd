/* What this machine has. Only for the discovery helper (moe-discover): hwloc is loaded in
 * nothing else. Everything reads below root ("" = the real one). */
#pragma once
#include "lib/base/error.h"
#include "lib/model/nodeinfo.h"

struct topo_options {
	const char *root;  /* "" real; a fake root directory */
	const char *xml;   /* hwloc XML instead; NULL none. Both mean simulated. */
	int64_t fake_gpus; /* fake slots where no GPU is found; 0 none */
	bool only_fake;    /* do not look for real GPUs */
	/* cpu list this agent may use; NULL = its affinity and cgroup cpuset */
	const char *cpus;
	/* slot list this agent may use (several agents share a machine); slots keep their index;
	 * NULL = all */
	const char *gpus;
	/* files and directories (without root) that are not read: a process hangs there. What
	 * they would say is unknown, without a finding */
	char **leave_out;
	size_t n_leave_out;
	/* the file (without root) that is being read, for whoever waits: a mapping of at_bytes;
	 * NULL = not known */
	char *at;
	size_t at_bytes;
};
int topo_discover(const struct topo_options *o, struct nodeinfo *ret, struct mo_error *err);
