/* See spool_make.h. */
#include "agent/core/agent/spool_make.h"

#include <string.h>

#include "agent/core/bind/bind_launch.h"
#include "lib/base/idset.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/model/runtime.h"

char *spool_taken(const struct neighbour *others, size_t n)
{
	_cleanup_(mo_idset_done) struct mo_idset all = { 0 };

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; !others[i].over && k < others[i].n_binds; k++) {
			_cleanup_(mo_idset_done) struct mo_idset one = { 0 };
			const char *cpus = others[i].binds[k].cpus;

			if (cpus && mo_idset_parse(cpus, &one) == 0)
				mo_idset_or(&all, &one);
		}
	return mo_idset_format(&all);
}

static void plan_binding(const struct node_terms *terms, const char *taken, struct spool *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct recipe_bind how;

	mo_desc_init(&recipe_bind_desc, &how);
	mo_desc_copy(&recipe_bind_desc, &how, &s->launch.bind);
	how.reserve_cores = MO_MAX(how.reserve_cores, terms->reserve_cores);
	int r = bind_launch(&s->info, &s->launch, &how, taken, &s->binds, &s->n_binds, &err);

	mo_desc_done(&recipe_bind_desc, &how);
	if (r < 0)
		s->bind_error = mo_printf("no binding on %s: %s", s->node, mo_error_text(&err, r));
}

/* Of a limit of the whole node: as much as it has of its GPUs. */
static int64_t share(int64_t all, const struct launch *l, const struct nodeinfo *info)
{
	/* not of its ranks: one may have all GPUs */
	int64_t n = (int64_t)l->n_gpus, of = (int64_t)info->n_gpus;

	if (all < 0 || n <= 0 || n >= of)
		return all;
	return MO_MAX(1, all / of * n + all % of * n / of);
}

void spool_make(const struct command *c, const struct node_terms *terms,
		const struct neighbour *others, size_t n_others, struct spool *ret)
{
	_cleanup_(mo_freep) char *taken = spool_taken(others, n_others);

	mo_str_set(&ret->step_id, terms->step_id);
	mo_str_set(&ret->boot_id, terms->boot_id);
	mo_str_set(&ret->node, terms->node);
	ret->epoch = c->epoch;
	mo_desc_copy(&launch_desc, &ret->launch, c->launch);
	mo_desc_copy(&nodeinfo_desc, &ret->info, terms->info);
	ret->info.walls = ret->info.walls && terms->own_namespace;
	mo_str_set(&ret->devices_root, terms->devices_root);
	mo_str_set(&ret->log_dir, terms->log_dir);
	mo_str_set(&ret->cgroup, terms->cgroup);
	mo_str_set(&ret->tmpdir, terms->tmpdir);
	if (c->launch->container && c->launch->container->writable == WRITABLE_DISK &&
	    !c->launch->container->runtime)
		mo_str_set(&ret->layer, terms->layer);
	if (c->launch->container && c->launch->container->digest)
		mo_str_set(&ret->images_dir, terms->images_dir);
	ret->squashfs = terms->squashfs;
	runtime_list(terms->runtimes, &ret->runtimes, &ret->n_runtimes);
	ret->allow_root = terms->allow_root && c->launch->allow_root;
	ret->own_namespace = terms->own_namespace;
	ret->min_uid = terms->min_uid;
	ret->log_bytes = terms->log_bytes;
	ret->nofile = terms->nofile;
	ret->memlock_bytes = terms->memlock_bytes;
	ret->core_bytes = terms->core_bytes;
	ret->memory_bytes = share(terms->memory_bytes, c->launch, terms->info);
	ret->pids = share(terms->pids, c->launch, terms->info);
	plan_binding(terms, taken, ret);
}
