/* Descriptions of kernel log rules. */
#include "lib/model/klog.h"

const char *const klog_severity_names[_KLOG_SEVERITY_N] = { "warn", "crit", "job" };

static const struct mo_field klog_rule_fields[] = {
	MO_D(klog_rule, id, MO_STR, "name of the rule, and the key of its reading"),
	MO_D_ENUM(klog_rule, severity, klog_severity_names,
		  "warn, crit, or job: a program's own fault"),
	MO_D_LIST(klog_rule, from, MO_STRS,
		  "names of drivers; empty: `match` is the beginning of the line"),
	MO_D_LIST(klog_rule, match, MO_STRS,
		  "PCRE2, case-sensitive, any of them, right behind how the driver begins"),
	MO_D_LIST(klog_rule, unless, MO_STRS,
		  "PCRE2, searched: lines that also match one of these do not count"),
	MO_D_LIST(klog_rule, example, MO_STRS, "lines that match, for each of `match` one"),
	MO_D(klog_rule, what, MO_STR, "what such a line means"),
	MO_D(klog_rule, next, MO_STR, "what to do"),
};
const struct mo_desc klog_rule_desc = MO_DESC(klog_rule, klog_rule_fields);

static const struct mo_field klog_driver_fields[] = {
	MO_D(klog_driver, name, MO_STR, "of a driver, or of a part of the kernel"),
	MO_D_LIST(klog_driver, begins, MO_STRS, "PCRE2, any of them: how its lines begin"),
};
const struct mo_desc klog_driver_desc = MO_DESC(klog_driver, klog_driver_fields);

static const struct mo_field klog_rules_fields[] = {
	MO_D_VEC(klog_rules, drivers, &klog_driver_desc, "how the lines of each driver begin"),
	MO_D_VEC(klog_rules, rules, &klog_rule_desc, "what lines mean"),
};
const struct mo_desc klog_rules_desc = MO_DESC(klog_rules, klog_rules_fields);
