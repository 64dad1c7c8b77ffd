/* Between the parts of lib/topo. A device's `path` names its PCI ancestors from the host bridge
 * down, "/"-separated, so that the deepest common ancestor of two devices is their longest
 * common beginning: a sysfs path below devices/, or hwloc object numbers for XML. What is odd
 * becomes a finding and never ends discovery. */
#pragma once
#include "lib/base/idset.h"
#include "lib/topo/topo.h"

/* A NUMA node and all its cpus, also those that this agent may not use: only to place devices. */
struct place {
	int64_t id;
	struct mo_idset cpus;
};
struct found_gpu {
	struct gpu_slot slot;
	char *path;
};
struct found_nic {
	struct nic_info nic;
	char *path;
	bool used;
};
struct finds {
	const struct topo_options *options;
	const char *root;
	const struct place *places;
	size_t n_places; /* not owned */
	struct found_gpu *gpus;
	size_t n_gpus;
	struct found_nic *nics;
	size_t n_nics;
	struct gpu_link *links;
	size_t n_links;
	struct node_finding *findings;
	size_t n_findings;
	/* findings beyond the limit */
	size_t n_dropped;
	char *driver;
	bool has_pci;
	/* a GPU may be there that could not be read: none is called lost */
	bool blind;
};
void finds_done(struct finds *f);
/* unknown everywhere, index given */
struct found_gpu *finds_add_gpu(struct finds *f);
struct found_nic *finds_add_nic(struct finds *f);
void finds_odd(struct finds *f, const char *object, const char *fmt, ...) _printf_(3, 4);
