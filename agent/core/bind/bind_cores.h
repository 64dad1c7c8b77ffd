/* The whole cores of one NUMA node (or of all), divided among the GPU slots that use them. Inner
 * header of the binding plan (bind.c). */
#pragma once
#include "lib/base/idset.h"
#include "lib/model/nodeinfo.h"

/* l3: rank of its L3 group in the pool; share: the slot, by position, that owns the core. */
struct core {
	struct mo_idset cpus;
	int64_t first;
	size_t l3, share;
	bool reserved;
};
/* Cores in L3 order: a share is a run of them. */
struct core_pool {
	struct core *cores;
	size_t n, n_shares, l3_max;
	bool divided;
};

void pool_done(struct core_pool *p);
/* The usable cores of NUMA node `numa`, MO_NONE = of all. -EINVAL: a malformed cpu list. */
int pool_fill(const struct nodeinfo *info, int64_t numa, struct core_pool *pool);
/* Divides the cores into n shares and marks up to `reserve` cores as reserved, as long as each
 * share keeps one. Without a core for each share nothing is divided, and of more than `keep`
 * cores the lowest are reserved. */
void pool_divide(struct core_pool *pool, size_t n, size_t reserve, size_t keep);
/* Adds the cpus of core i; with one_thread its first only. */
void core_give(const struct core_pool *pool, size_t i, bool one_thread, struct mo_idset *ret);
/* Whether none of the core's threads is taken. */
bool core_is_free(const struct core_pool *pool, size_t i, const struct mo_idset *taken);
