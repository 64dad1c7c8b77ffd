/* Descriptions of kernel log rules. */
#include "lib/model/klog.h"

const char *const klog_severity_names[_KLOG_SEVERITY_N] = { "warn", "crit", "job" };

static const struct mo_field klog_rule_fields[] = {
	MO_F(klog_rule, id, MO_STR),           MO_F_ENUM(klog_rule, severity, klog_severity_names),
	MO_F_LIST(klog_rule, from, MO_STRS),   MO_F_LIST(klog_rule, match, MO_STRS),
	MO_F_LIST(klog_rule, unless, MO_STRS), MO_F_LIST(klog_rule, example, MO_STRS),
	MO_F(klog_rule, what, MO_STR),         MO_F(klog_rule, next, MO_STR),
};
const struct mo_desc klog_rule_desc = MO_DESC(klog_rule, klog_rule_fields);

static const struct mo_field klog_driver_fields[] = {
	MO_F(klog_driver, name, MO_STR),
	MO_F_LIST(klog_driver, begins, MO_STRS),
};
const struct mo_desc klog_driver_desc = MO_DESC(klog_driver, klog_driver_fields);

static const struct mo_field klog_rules_fields[] = {
	MO_F_VEC(klog_rules, drivers, &klog_driver_desc),
	MO_F_VEC(klog_rules, rules, &klog_rule_desc),
};
const struct mo_desc klog_rules_desc = MO_DESC(klog_rules, klog_rules_fields);
