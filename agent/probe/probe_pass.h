/* Reading for a probe: files below the root, each opened and read once with a size limit,
 * counted. What is not there (another driver version, another vendor) is silently no reading;
 * what is there and cannot be read (EBUSY, EINVAL, EIO while a GPU resets), or says nothing that
 * such a file can say, is named in the probe's `problem` with its first bytes, gives no reading,
 * and the rest goes on: garbage is never taken for a value, least of all for 0. A read may hang
 * for as long as the driver does: the caller has a deadline for the whole process. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/model/health.h"

#define PASS_FILE_MAX (64 * 1024)

struct probe_pass {
	const char *root; /* "" = this machine */
	/* descriptors of the root and of the device's directory (-1 = none) */
	int top, dir;
	struct probe *probe;
	struct mo_buf text; /* of the file read last */
	int64_t files;      /* opened */
	/* files that could not be read, or were not understood, those of others too */
	int64_t problems;
	/* what is read now belongs to another device: its own probe tells what is wrong with it */
	bool others;
};
/* negative errno: the root is no directory */
int pass_open(const char *root, struct probe *probe, struct probe_pass *ret);
void pass_done(struct probe_pass *l);
/* path from the root becomes `dir`; false when there is none */
bool pass_enter(struct probe_pass *l, const char *path);
/* the same for dir/name, which must be there: that it is not is a problem */
bool pass_device(struct probe_pass *l, const char *dir, const char *name);

/* It is there, and is named in `problem` as not to be understood: what is missing, and how it
 * begins. For the file that was read last. */
void pass_bad(struct probe_pass *l, const char *path, const char *what);

/* Text of a file, NULL when it is missing, unreadable or no text (other bytes than printable
 * UTF-8); valid until the next call. pass_*: below `dir`; pass_root*: from the root, without a
 * leading slash. */
const char *pass_text(struct probe_pass *l, const char *path);
const char *pass_root(struct probe_pass *l, const char *path);
const struct mo_buf *pass_bytes(struct probe_pass *l, const char *path, size_t max);
/* from the root: it could be read, whatever it says, and nothing of it is reported */
bool pass_touch(struct probe_pass *l, const char *path);
/* One value and nothing else: a number from 0 on, a line. MO_NONE, NULL: none, for the reasons
 * above or because the file says so (all bits set, "N/A"; an empty line). */
int64_t pass_int(struct probe_pass *l, const char *path);
int64_t pass_root_int(struct probe_pass *l, const char *path);
/* caller frees, as the next one */
char *pass_line(struct probe_pass *l, const char *path);
char *pass_root_line(struct probe_pass *l, const char *path);
double pass_leading(struct probe_pass *l, const char *path); /* "32.0 GT/s PCIe" */
double pass_root_leading(struct probe_pass *l, const char *path);
/* Number behind `key` in the text of `path` that was read last; a number must be there. */
int64_t pass_key(struct probe_pass *l, const char *path, const char *text, const char *key);
/* A file that is one value becomes a reading. */
void pass_add_int(struct probe_pass *l, const char *key, const char *path);
void pass_add_text(struct probe_pass *l, const char *key, const char *path);
/* Last part of where a link points to; caller frees, NULL if none. */
char *pass_link(struct probe_pass *l, const char *path);
/* Names in a directory, sorted with numbers in order (hwmon2 before hwmon10), hidden ones left
 * out; at most 4096. Empty when it is missing. */
struct pass_names {
	char **items;
	size_t n;
};
struct pass_names pass_list(struct probe_pass *l, bool from_root, const char *path);
void pass_names_done(struct pass_names *n);

/* The areas. object: checked by the caller to be a PCI address, or a name without '/'. */
/* left_out: addresses of GPUs that are not asked, because they would not answer */
struct host_options {
	char **disks;
	size_t n_disks;
	int64_t limits_of;
	char **left_out;
	size_t n_left_out;
};
void probe_gpu(struct probe_pass *l, const char *bdf);
/* what changes from second to second, in a few reads */
void probe_sensors(struct probe_pass *l, const char *bdf);
/* what /proc gives beside PCI; called by probe_gpu */
void probe_nvidia(struct probe_pass *l, const char *bdf);
/* links and processes of an AMD GPU; called by probe_gpu */
void probe_kfd(struct probe_pass *l, const char *bdf);
void probe_nic(struct probe_pass *l, const char *name);
void probe_nic_sensors(struct probe_pass *l, const char *name); /* the bytes that it moved */
void probe_host(struct probe_pass *l, const struct host_options *o);
void probe_stack(struct probe_pass *l);
/* negative: the rules cannot be read */
int probe_klog(struct probe_pass *l, int64_t since, struct mo_error *err);

/* no reading: the checks in force (struct health_checks) as JSON */
int probe_checks(struct mo_buf *ret, struct mo_error *err);

/* Facts that several areas tell. */
/* of a kernel module; caller frees, NULL unknown */
char *driver_version(struct probe_pass *l, const char *module);
/* "performance", or "performance, 3 powersave"; caller frees, NULL without cpufreq */
char *governors(struct probe_pass *l);
enum maker { MAKER_OTHER, MAKER_AMD, MAKER_NVIDIA };
/* whose GPU it is, by vendor and class, or by its driver where these cannot be understood; the
 * VGA of a BMC is other */
enum maker pci_gpu(struct probe_pass *l, const char *bdf);
