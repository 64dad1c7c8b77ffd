/* Descriptions of failure signatures and verdicts; the verdict's is the document of `moectl
 * classify --json`. */
#include "lib/model/failure.h"

const char *const failure_class_names[_FAILURE_CLASS_N] = { "user_error", "transient",  "suspect",
							    "node_fault", "hang",       "numerical",
							    "storage",    "collateral", "preempted",
							    "ok" };
_Static_assert(ELEMENTSOF(failure_class_names) == _FAILURE_CLASS_N, "a name for each class");
const char *const failure_source_names[_FAILURE_SOURCE_N] = { "any", "log", "kernel", "exit" };
_Static_assert(ELEMENTSOF(failure_source_names) == _FAILURE_SOURCE_N, "a name for each source");

static const struct mo_field failure_rule_fields[] = {
	MO_F(failure_rule, id, MO_STR),
	MO_F_ENUM(failure_rule, class, failure_class_names),
	MO_F(failure_rule, order, MO_INT),
	MO_F_ENUM(failure_rule, source, failure_source_names),
	MO_F_LIST(failure_rule, match, MO_STRS),
	MO_F_LIST(failure_rule, unless, MO_STRS),
	MO_F_ENUM(failure_rule, late, failure_class_names),
	MO_F(failure_rule, weak, MO_BOOL),
	MO_F(failure_rule, why, MO_STR),
};
const struct mo_desc failure_rule_desc = MO_DESC(failure_rule, failure_rule_fields);

static const struct mo_field failure_rules_fields[] = {
	MO_F(failure_rules, progress, MO_STR),
	MO_F(failure_rules, late_iteration, MO_INT),
	MO_F(failure_rules, rank, MO_STR),
	MO_F(failure_rules, collective, MO_STR),
	MO_F_VEC(failure_rules, rules, &failure_rule_desc),
};
const struct mo_desc failure_rules_desc = MO_DESC(failure_rules, failure_rules_fields);

static const struct mo_field failure_evidence_fields[] = {
	MO_F(failure_evidence, source, MO_STR),
	MO_F(failure_evidence, line, MO_INT),
	MO_F(failure_evidence, text, MO_STR),
};
const struct mo_desc failure_evidence_desc = MO_DESC(failure_evidence, failure_evidence_fields);

static const struct mo_field failure_verdict_fields[] = {
	MO_F_ENUM(failure_verdict, class, failure_class_names),
	MO_F_VEC(failure_verdict, evidence, &failure_evidence_desc),
	MO_F(failure_verdict, first_rank, MO_INT),
	MO_F(failure_verdict, why, MO_STR),
};
const struct mo_desc failure_verdict_desc = MO_DESC(failure_verdict, failure_verdict_fields);
