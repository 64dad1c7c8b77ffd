/* Records of the kernel's log -> what they say about the node: counts per rule
 * (config/health/klog.yaml), the devices and processes that they name, evidence. Pure. Called by
 * moe-probe; fuzzed. A record is what one read of /dev/kmsg gives ("prio,seq,us,flags;text",
 * then lines " KEY=value"), or a line of a text file as dmesg prints it. Only the kernel's own
 * records count (facility 0): anybody who may write to /dev/kmsg gets another one, so a program
 * cannot drain a node. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/health.h"
#include "lib/model/klog.h"

/* lines kept per rule: the first ones, which are nearest to the cause */
#define KLOG_EVIDENCE_MAX 8
#define KLOG_EVIDENCE_BYTES 400 /* of one line */
#define KLOG_NAMED_MAX 64       /* devices, event ids or processes kept per rule */

struct klog;
int klog_new(const struct klog_rules *rules, struct klog **ret, struct mo_error *err);
struct klog *klog_free(struct klog *k);
MO_DEFINE_CLEANUP(struct klog, klog_free)
/* Records up to and including the number `since` do not count; -1 = all. */
void klog_since(struct klog *k, int64_t since);
/* One record without its last newline. A record without a number of its own gets the next one,
 * so that line numbers serve for files. */
void klog_feed(struct klog *k, const char *record, size_t n);
/* A whole file of records or lines. */
void klog_feed_text(struct klog *k, const char *text, size_t n);
int64_t klog_last(const struct klog *k); /* highest number seen, -1 = none */
/* Appends the readings of area klog (docs/health.md). */
void klog_readings(const struct klog *k, struct probe *p);
