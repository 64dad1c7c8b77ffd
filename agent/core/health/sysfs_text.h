/* The small texts of sysfs and proc that a health probe reads, decoded: bytes in, numbers out.
 * MO_NONE = the text does not say. Pure. Called by moe-probe. Formats: hardware facts 1.1 to 1.6
 * (amdgpu's sysfs documentation, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats,
 * sysfs-class-infiniband, KFD topology). */
#pragma once
#include "lib/base/desc.h"

#define TEXT_LINE_MAX 256

/* Whole text as one number (blanks around it allowed), decimal or 0x hexadecimal; a number above
 * INT64_MAX is unknown. */
int64_t text_whole(const char *s);
/* Number behind `key` in lines "key value" or "key: value" ("MemFree:  716800 kB", "ue: 2",
 * "location_id 7680", "TOTAL_ERR_COR 12"). */
int64_t text_key_int(const char *s, const char *key);
/* Same for the text behind it, without blanks at its end; caller frees, NULL when absent. */
char *text_key(const char *s, const char *key);
/* Printable text in UTF-8 with tabs and line ends. */
bool text_is_text(const char *s, size_t n);
/* A copy that can be shown: other bytes become '?', what is longer than max bytes ends with
 * "..."; caller frees. */
char *text_clean(const char *s, size_t n, size_t max);
/* Says that there is no value: all bits set, "N/A", "Unknown". */
bool text_no_value(const char *s);
/* First line without blanks around it; caller frees; NULL when empty. */
char *text_line(const char *s);
/* Behind a leading number: "4: ACTIVE" -> "ACTIVE"; caller frees. */
char *text_state(const char *s);
/* The word in brackets: "always [madvise] never" -> "madvise"; caller frees; NULL if none. */
char *text_chosen(const char *s);
/* Leading decimal number, also with a fraction: "32.0 GT/s PCIe" -> 32, "400 Gb/sec (4X NDR)" ->
 * 400. MO_NONE_F for "Unknown". */
double text_leading(const char *s);
/* pp_dpm_*: MHz of the line with the star. */
int64_t text_dpm_mhz(const char *s);
/* "0-3,8": how many CPUs (or nodes) a Linux list names; MO_NONE when it is malformed. */
int64_t text_list_count(const char *s);
/* A kernel command line without what may be secret or names one machine: only parameters that
 * are known to change how a node computes are kept; caller frees, NULL when none is there. */
char *text_cmdline(const char *s);
/* Value of NAME=value on a kernel command line; caller frees; NULL if none. */
char *text_option(const char *cmdline, const char *name);

/* ras/gpu_vram_bad_pages: lines "0xpfn : 0xsize : R|P|F", none when all is well; false: another
 * line is among them. */
struct bad_pages {
	int64_t retired, pending, failed;
};
bool text_bad_pages(const char *s, struct bad_pages *ret);
/* ras/event_state; MO_NONE where a line is missing; false: none is there. */
struct ras_events {
	int64_t fatal, created, consumed;
};
bool text_ras_events(const char *s, struct ras_events *ret);
/* ras/BLOCK_err_count: counts behind ue, ce, de; MO_NONE where a line is missing; false: none is
 * there, or one is no count. */
enum { RAS_UE, RAS_CE, RAS_DE, RAS_KINDS };
extern const char *const ras_kinds[RAS_KINDS]; /* ue ce de */
bool text_ras_counts(const char *s, int64_t ret[static RAS_KINDS]);
/* /proc/PID/limits: soft limit of a row such as "Max locked memory"; TEXT_UNLIMITED for
 * unlimited, MO_NONE_F when absent. */
#define TEXT_UNLIMITED 18446744073709551615.0
double text_limit(const char *s, const char *row);
/* /proc/mounts: bytes of the size= option of a tmpfs; MO_NONE when it has none. */
int64_t text_mount_size(const char *s, const char *where);
/* "0000:05:00.0", also with an 8-digit domain or capital letters -> the form sysfs uses in ret;
 * false when it is no PCI address. */
bool text_bdf(const char *s, char ret[static 16]);
