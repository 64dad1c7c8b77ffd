/* What lines of the kernel's log mean (config/health/klog.yaml): plain values. Applied by agent/core/klog.h. */
#pragma once
#include "lib/base/desc.h"

enum klog_severity { KLOG_WARN, KLOG_CRIT, KLOG_JOB, _KLOG_SEVERITY_N };      /* job: a program's own fault, the node is fine */
extern const char *const klog_severity_names[_KLOG_SEVERITY_N];
struct klog_rule {
	char *id;                /* also the key of its reading */
	int severity;            /* enum klog_severity */
	char **match; size_t n_match;     /* PCRE2, case-sensitive, any of them, searched in one line */
	char **unless; size_t n_unless;   /* PCRE2: lines that also match one of these do not count */
	char *what, *next;       /* what it means; what to do */
};
struct klog_rules { struct klog_rule *rules; size_t n_rules; };
extern const struct mo_desc klog_rule_desc, klog_rules_desc;
