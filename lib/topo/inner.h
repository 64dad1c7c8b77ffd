/* Between the parts of lib/topo. A device's `path` names its PCI ancestors from the host bridge down, "/"-separated, so that the deepest common ancestor of two
 * devices is their longest common beginning: a sysfs path below devices/, or hwloc object numbers for XML. What is odd becomes a finding and never ends discovery. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/idset.h"
#include "lib/topo/topo.h"

#define FILE_MAX (64 * 1024)
#define ENTRIES_MAX 4096

/* A NUMA node and all its cpus, also those that this agent may not use: only to place devices. */
struct place { int64_t id; struct mo_idset cpus; };
struct found_gpu { struct gpu_slot slot; char *path; };
struct found_nic { struct nic_info nic; char *path; bool used; };
struct finds {
	const struct topo_options *options;
	const char *root;
	const struct place *places; size_t n_places;                   /* not owned */
	struct found_gpu *gpus; size_t n_gpus;
	struct found_nic *nics; size_t n_nics;
	struct gpu_link *links; size_t n_links;
	struct node_finding *findings; size_t n_findings;
	size_t n_dropped;                                              /* findings beyond the limit */
	char *driver;
	bool has_pci;
	bool blind;                                                    /* a GPU may be there that could not be looked at: none is called lost */
};
void finds_done(struct finds *f);
struct found_gpu *finds_add_gpu(struct finds *f);                      /* unknown everywhere, index given */
struct found_nic *finds_add_nic(struct finds *f);
void finds_odd(struct finds *f, const char *object, const char *fmt, ...) _printf_(3, 4);

/* files.c. Texts have only printable ASCII in them, whatever the file has. */
/* Every file is read through here: says first which one it is, and does not touch what is left out (-ECANCELED). */
int read_text(const struct finds *f, const char *path, struct mo_buf *b);
bool reach(const struct finds *f, const char *path);                   /* the same for what is not read but opened; false: left out */
char *file_line(const struct finds *f, const char *path, int *ret_error);     /* first line without blanks at its end; NULL and -errno when unreadable; ret_error may be NULL */
int64_t file_int(const struct finds *f, const char *path, int64_t otherwise);
int64_t file_hex(const struct finds *f, const char *path);             /* "0x1002"; -1 unknown */
/* A file of a device: missing or left out is NULL, unreadable is NULL and a finding. */
char *device_line(struct finds *f, const char *object, const char *dir, const char *file);
char *props_value(const char *text, const char *key);                   /* of "key value" or "Key:  value" lines; caller frees, NULL absent */
int64_t props_int(const char *text, const char *key);                   /* MO_NONE: absent, malformed, beyond 63 bits, or all ones in 32 bits */
uint64_t props_u64(const char *text, const char *key, bool *ret_ones);  /* 0: absent, malformed or all ones (which ret_ones tells) */
int64_t *dir_numbers(const char *dir, size_t *ret_n);                  /* numbered entries, ascending */
char **dir_names(const char *dir, size_t *ret_n);                      /* sorted */
void names_free(char **names, size_t n);
char *pci_path(const char *link);                                      /* "pci0000:04/0000:04:01.1/..."; NULL when it has none */
int64_t pci_numa(struct finds *f, const char *object, const char *dir);/* NUMA node of a PCI device; MO_NONE unknown */

void find_amd(struct finds *f);                                        /* amd.c */
void find_nvidia(struct finds *f);                                     /* nvidia.c */
void find_nics(struct finds *f);                                       /* nics.c */
struct hwloc_topology;
void find_in_xml(struct hwloc_topology *t, struct finds *f);          /* xml.c */
const char *nic_family(int64_t vendor, const char *driver, const char *name);
/* pci.c: GPUs of a vendor on the bus that are not among those found: `why` says what that means. */
void find_lost(struct finds *f, int64_t vendor, const char *why);
/* Catalogue name of a GPU by its PCI ids; caller frees. model: the driver's name for it, NULL none. */
char *gpu_model_name(int64_t vendor, int64_t device, const char *model);
/* amd.c: whether a device node can be opened (below a root directory: is there); if not, a finding. One that is left out counts as one that opens: slots keep their numbers. */
bool device_opens(struct finds *f, const char *object, const char *path);
bool gpu_class(int64_t vendor, int64_t class);                         /* class: base and sub class, 0x1200 */
/* pair.c: gives each GPU a NIC. */
void pair_nics(struct finds *f);
