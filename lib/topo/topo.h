/* What this machine has. Only for the discovery helper (moe-discover) and moectl: hwloc is never loaded in the agent. Everything reads below root ("" = the real one). */
#pragma once
#include "lib/base/error.h"
#include "lib/model/nodeinfo.h"

struct topo_options {
	const char *root;            /* "" real; a fake root directory */
	const char *xml;             /* hwloc XML instead; NULL none. Both mean simulated. */
	int64_t fake_gpus;           /* fake slots where no GPU is found; 0 none */
	bool only_fake;              /* do not look for real GPUs */
	const char *cpus;            /* cpu list this agent may use; NULL = its affinity and cgroup cpuset */
	const char *gpus;            /* slot list this agent may use (several agents share a machine); slots keep their index; NULL = all */
};
int topo_discover(const struct topo_options *o, struct nodeinfo *ret, struct mo_error *err);
