/* Between the parts of lib/topo. A device's `path` names its PCI ancestors from the host bridge down, "/"-separated, so that the deepest common ancestor of two
 * devices is their longest common beginning: a sysfs path below devices/, or hwloc object numbers for XML. */
#pragma once
#include "lib/base/buf.h"
#include "lib/topo/topo.h"

struct found_gpu { struct gpu_slot slot; char *path; };
struct found_nic { char *name, *path; int64_t numa_node; bool used; };
struct finds { struct found_gpu *gpus; size_t n_gpus; struct found_nic *nics; size_t n_nics; char *driver; };
void finds_done(struct finds *f);
struct found_gpu *finds_add_gpu(struct finds *f);                      /* unknown everywhere, index given */

/* gpus.c: sysfs and proc below root. numa: the node's CPUs, to place devices whose firmware names no node. */
void find_gpus(const char *root, const struct numa_node *numa, size_t n_numa, struct finds *f);
void find_nics(const char *root, struct finds *f);
/* Catalogue name of a GPU by its PCI ids; caller frees. model: the driver's name for it, NULL none. */
char *gpu_model_name(int64_t vendor, int64_t device, const char *model);
/* nic.c: gives each GPU a NIC. */
void pair_nics(struct finds *f);
