/* Environment profiles: sets of variables that go with a vendor, GPU models, a NIC family, an
 * engine or values of the recipe (config/env). What depends on the recipe is decided when a job
 * is submitted; what depends on the node when it is launched there, by the node's own nodeinfo,
 * so that a launch order carries only what applies. */
#pragma once
#include "lib/model/launch.h"
#include "lib/model/nodeinfo.h"

struct env_profile {
	char *name;    /* file name without .yaml */
	int layer;     /* enum env_layer: base, profile, engine or feature */
	int64_t order; /* within the layer: later ones override */
	/* amd | nvidia; NULL = any node, also one without GPUs */
	char *vendor;
	char **gpu;
	size_t n_gpu; /* models; empty = any */
	char **nic;
	size_t n_nic; /* families; empty = any */
	struct env_item *items;
	size_t n_items;
};
extern const struct mo_desc env_profile_desc;

/* The node's part of the condition. gpus: slots of the job there; its first GPU names vendor and
 * model, the first NIC paired with one of them the family. info NULL: a node of which nothing is
 * known. */
bool env_profile_applies(const struct env_profile *p, const struct nodeinfo *info,
			 const int64_t *gpus, size_t n_gpus);
