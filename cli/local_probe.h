/* What a machine has, for a local cluster on it. */
#pragma once
#include "cli/local_cluster.h"
#include "lib/model/nodeinfo.h"

/* This machine, or the cluster's topology; ret initialised. is_root: the topology is a
 * directory. */
int local_probe(const struct local *l, bool is_root, bool count_gpus, struct nodeinfo *ret,
		struct mo_error *err);
