/* The network variables that follow from a node's own devices: NCCL_IB_HCA, NCCL_IB_GID_INDEX,
 * NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME. Pure. Called by env_compose(). */
#pragma once
#include "lib/model/launch.h"
#include "lib/model/nodeinfo.h"

/* A device of that name is paired with one of the job's GPUs. */
bool env_nic_used(const struct launch *l, const struct nodeinfo *info, const char *nic);
/* Appends items of the profile layer; one without value and file means: unset. gid: what the
 * profiles say of NCCL_IB_GID_INDEX, NULL nothing; where the NICs confirm it, that is added to
 * its reason. ifname: interface that owns this node's address, NULL unknown. */
void env_nics(const struct launch *l, const struct nodeinfo *info, struct env_item *gid,
	      const char *ifname, struct env_item **items, size_t *n_items);
