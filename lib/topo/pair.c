/* GPU and NIC pairs: the NIC with the deepest common PCI ancestor below the host bridge, in GPU
 * order, each NIC once while there are enough; else a NIC of the same NUMA node in turn. Depth
 * of the common ancestor, not the number of hops: MI300X has internal bridges that hop counts
 * misjudge. Called by topo.c. */

#include "lib/topo/pair.h"

#include <string.h>

/* Shared components below the host bridge; 0 = at most the host bridge is shared. */
static size_t common_depth(const char *a, const char *b)
{
	size_t depth = 0, i;

	if (!a || !b)
		return 0;
	for (i = 0; a[i] && a[i] == b[i]; i++)
		depth += a[i] == '/';
	bool whole = (a[i] == 0 || a[i] == '/') && (b[i] == 0 || b[i] == '/');
	return whole && i > 0 ? depth : depth ? depth - 1 : 0;
}

static struct found_nic *nearest(const struct found_gpu *g, struct finds *f)
{
	struct found_nic *best = NULL;
	size_t best_depth = 0;

	for (size_t i = 0; i < f->n_nics; i++) {
		size_t depth = common_depth(g->path, f->nics[i].path);
		if (depth > best_depth ||
		    (depth && depth == best_depth && best->used && !f->nics[i].used)) {
			best = &f->nics[i];
			best_depth = depth;
		}
	}
	return best;
}

/* nth NIC of the NUMA node, in turn. */
static struct found_nic *of_node(const struct finds *f, int64_t numa, size_t nth)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_nics; i++)
		n += f->nics[i].nic.numa_node == numa;
	for (size_t i = 0, k = 0; n && i < f->n_nics; i++)
		if (f->nics[i].nic.numa_node == numa && k++ == nth % n)
			return &f->nics[i];
	return NULL;
}

void pair_nics(struct finds *f)
{
	for (size_t i = 0; i < f->n_gpus; i++) {
		struct gpu_slot *slot = &f->gpus[i].slot;
		struct found_nic *nic = nearest(&f->gpus[i], f);

		if (!nic && slot->numa_node != MO_NONE) {
			size_t nth = 0;
			for (size_t k = 0; k < i; k++)
				nth += f->gpus[k].slot.numa_node == slot->numa_node;
			nic = of_node(f, slot->numa_node, nth);
		}
		if (!nic)
			continue;
		nic->used = true;
		mo_str_set(&slot->nic, nic->nic.name);
	}
}
