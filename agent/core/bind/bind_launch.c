/* See bind_launch.h. A process with several GPUs gets the cores of all of them; its memory is
 * not bound when they lie on several NUMA nodes: its threads are everywhere, and first touch
 * puts each page next to the thread that uses it. */
#include "agent/core/bind/bind_launch.h"

#include <errno.h>

#include "lib/base/idset.h"
#include "lib/model/launch.h"

static void add_cpus(struct mo_idset *all, const char *cpus)
{
	_cleanup_(mo_idset_done) struct mo_idset one = { 0 };

	if (cpus && mo_idset_parse(cpus, &one) == 0)
		mo_idset_or(all, &one);
}

static void merge(const struct rank_bind *each, size_t n, struct rank_bind *ret)
{
	_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
	bool bound = false;

	mo_desc_copy(&rank_bind_desc, ret, &each[0]);
	for (size_t i = 0; i < n; i++) {
		add_cpus(&cpus, each[i].cpus);
		bound |= each[i].cpus != NULL;
		ret->shared |= each[i].shared;
		ret->simulated |= each[i].simulated;
		if (each[i].numa_node == ret->numa_node)
			continue;
		ret->numa_node = MO_NONE;
		ret->mem_policy = MEM_NONE;
		mo_str_set(&ret->mem_nodes, NULL);
	}
	if (!bound)
		return;
	free(ret->cpus);
	ret->cpus = mo_idset_format(&cpus);
	if (!ret->shared)
		for (size_t i = 1; i < n; i++)
			ret->n_cpus += each[i].n_cpus;
}

int bind_launch(const struct nodeinfo *info, const struct launch *l, const struct recipe_bind *how,
		const char *taken_cpus, struct rank_bind **ret, size_t *n_ret, struct mo_error *err)
{
	struct rank_bind *each = NULL;
	size_t n = 0;

	if (l->n_local == (int64_t)l->n_gpus)
		return bind_plan(info, how, l->gpus, l->n_gpus, taken_cpus, ret, n_ret, err);
	if (l->n_local != 1 || l->n_gpus == 0)
		return mo_error_set(err, -EINVAL,
				    "%lld ranks for %zu GPUs: neither one for each nor one for all",
				    (long long)l->n_local, l->n_gpus);
	int r = bind_plan(info, how, l->gpus, l->n_gpus, taken_cpus, &each, &n, err);

	if (r >= 0 && n > 0)
		merge(each, n, mo_vec_add(&rank_bind_desc, (void **)ret, n_ret));
	mo_vec_clear(&rank_bind_desc, (void **)&each, &n);
	return r;
}
