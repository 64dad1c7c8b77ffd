/* Reading for a probe: files below the root, each opened and read once with a size limit, counted. What is not there (another driver version, another vendor) is silently no
 * reading; what is there and cannot be read (EBUSY, EINVAL, EIO while a GPU resets) is named in the probe's `problem` and the rest goes on. A read may hang for as long as the
 * driver does: the caller has a deadline for the whole process. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/model/health.h"

#define LOOK_FILE_MAX (64 * 1024)

struct look {
	const char *root;        /* "" = this machine */
	int top, dir;            /* descriptors of the root and of the device's directory (-1 = none) */
	struct probe *probe;
	struct mo_buf text;      /* of the file read last */
	int64_t files;           /* opened */
	int64_t problems;        /* files that could not be read */
};
int look_open(const char *root, struct probe *probe, struct look *ret);    /* negative errno: the root is no directory */
void look_done(struct look *l);
bool look_enter(struct look *l, const char *path);                        /* path from the root becomes `dir`; false when there is none */

/* Text of a file, NULL when it is missing or unreadable; valid until the next call. look_*: below `dir`; the others: from the root, without a leading slash. */
const char *look_text(struct look *l, const char *path);
const char *look_root(struct look *l, const char *path);
const struct mo_buf *look_bytes(struct look *l, const char *path, size_t max);
int64_t look_int(struct look *l, const char *path);
int64_t look_root_int(struct look *l, const char *path);
/* A file that is one value becomes a reading. */
void look_add_int(struct look *l, const char *key, const char *path);
void look_add_text(struct look *l, const char *key, const char *path);
/* Last part of where a link points to; caller frees, NULL if none. */
char *look_link(struct look *l, const char *path);
/* Names in a directory, sorted with numbers in order (hwmon2 before hwmon10), hidden ones left out; at most 4096. Empty when it is missing. */
struct look_names { char **items; size_t n; };
struct look_names look_list(struct look *l, bool from_root, const char *path);
void look_names_done(struct look_names *n);

/* The areas. object: checked by the caller to be a PCI address, or a name without '/'. */
struct host_options { char **disks; size_t n_disks; int64_t limits_of; };
void probe_gpu(struct look *l, const char *bdf);
void probe_sensors(struct look *l, const char *bdf);                       /* what changes from second to second, in a few reads */
void probe_nvidia(struct look *l, const char *bdf);                        /* what /proc gives beside PCI; called by probe_gpu */
void probe_kfd(struct look *l, const char *bdf);                           /* links and processes of an AMD GPU; called by probe_gpu */
void probe_nic(struct look *l, const char *name);
void probe_host(struct look *l, const struct host_options *o);
void probe_stack(struct look *l);
int probe_klog(struct look *l, int64_t since, struct mo_error *err);       /* negative: the rules cannot be read */

int probe_checks(struct mo_buf *ret, struct mo_error *err);                 /* no reading: the checks in force (struct health_checks) as JSON */

/* Facts that several areas tell. */
char *driver_version(struct look *l, const char *module);                  /* of a kernel module; caller frees, NULL unknown */
char *governors(struct look *l);                                           /* "performance", or "performance, 3 powersave"; caller frees, NULL without cpufreq */
bool pci_is_gpu(struct look *l, const char *bdf);                          /* an AMD or NVIDIA GPU by vendor and class; the VGA of a BMC is none */
