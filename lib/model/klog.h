/* What lines of the kernel's log mean (config/health/klog.yaml): plain values. Applied by
 * agent/core/health/klog.h. */
#pragma once
#include "lib/base/desc.h"

/* job: a program's own fault, the node is fine */
enum klog_severity { KLOG_WARN, KLOG_CRIT, KLOG_JOB, _KLOG_SEVERITY_N };
extern const char *const klog_severity_names[_KLOG_SEVERITY_N];
/* How the lines of one driver, or one part of the kernel, begin: PCRE2, any of them. */
struct klog_driver {
	char *name;
	char **begins;
	size_t n_begins;
};
/* A line counts when it is, from its first byte, how a driver of `from` begins and then what
 * `match` says. Whatever a program can put into a line (its name, a path) stands behind words of
 * the kernel's own, so it never begins one that a rule knows. */
struct klog_rule {
	char *id;     /* also the key of its reading */
	int severity; /* enum klog_severity */
	/* names of drivers; none: `match` is the beginning of the line */
	char **from;
	size_t n_from;
	/* PCRE2, case-sensitive, any of them, right behind that */
	char **match;
	size_t n_match;
	/* PCRE2, searched: lines that also match one of these do not count */
	char **unless;
	size_t n_unless;
	/* lines that match, for each of `match` one: shown to readers, and what tests try to
	 * forge */
	char **example;
	size_t n_example;
	char *what, *next; /* what it means; what to do */
};
struct klog_rules {
	struct klog_driver *drivers;
	size_t n_drivers;
	struct klog_rule *rules;
	size_t n_rules;
};
extern const struct mo_desc klog_driver_desc, klog_rule_desc, klog_rules_desc;

/* Behind every pattern: (?&bdf) is a PCI address, (?&comm) the name of a process as /dev/kmsg
 * escapes it (15 bytes, any). */
#define KLOG_WORDS \
	"(?(DEFINE)(?<bdf>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7])" \
	"(?<comm>(?:\\\\x[0-9a-f]{2}|.){1,15}))"
