/* Descriptions of failure signatures and verdicts; the verdict's is the document of `moectl
 * classify --json`. */
#include "lib/model/failure.h"

const char *const failure_class_names[_FAILURE_CLASS_N] = { "user_error", "transient",  "suspect",
							    "node_fault", "hang",       "numerical",
							    "storage",    "collateral", "preempted",
							    "ok" };
_Static_assert(ELEMENTSOF(failure_class_names) == _FAILURE_CLASS_N, "a name for each class");
const char *const failure_action_names[_FAILURE_ACTION_N] = { "stop", "retry", "elsewhere", "wait",
							      "cordon" };
_Static_assert(ELEMENTSOF(failure_action_names) == _FAILURE_ACTION_N, "a name for each action");
const char *const failure_source_names[_FAILURE_SOURCE_N] = { "any", "log", "kernel", "exit" };
_Static_assert(ELEMENTSOF(failure_source_names) == _FAILURE_SOURCE_N, "a name for each source");

static const struct mo_field failure_rule_fields[] = {
	MO_D(failure_rule, id, MO_STR, "name of the rule"),
	MO_D_ENUM(failure_rule, class, failure_class_names, "class of the failure when it decides"),
	MO_D(failure_rule, order, MO_INT,
	     "the lowest of all that match decides; between equals the earliest line"),
	MO_D_ENUM(failure_rule, source, failure_source_names,
		  "where its lines are read; any: log and kernel"),
	MO_D_LIST(failure_rule, match, MO_STRS,
		  "PCRE2, caseless, any of them, searched in one line"),
	MO_D_LIST(failure_rule, unless, MO_STRS,
		  "PCRE2: lines that also match one of these do not count"),
	MO_D_ENUM(failure_rule, late, failure_class_names,
		  "class once the log showed late_iteration; unset: the same"),
	MO_D(failure_rule, weak, MO_BOOL,
	     "does not count when the program is known to have exited 0"),
	MO_D(failure_rule, why, MO_STR, "what a line of it means, in words"),
};
const struct mo_desc failure_rule_desc = MO_DESC(failure_rule, failure_rule_fields);

static const struct mo_field failure_rules_fields[] = {
	MO_D(failure_rules, progress, MO_STR, "PCRE2 with group iteration: a line of progress"),
	MO_D(failure_rules, late_iteration, MO_INT,
	     "iteration from which the class `late` of a rule holds"),
	MO_D(failure_rules, rank, MO_STR, "PCRE2 with group rank: which rank a line is about"),
	MO_D(failure_rules, collective, MO_STR,
	     "PCRE2 with groups rank and last: how far its collectives came"),
	MO_D_VEC(failure_rules, rules, &failure_rule_desc, "in the order of the file"),
};
const struct mo_desc failure_rules_desc = MO_DESC(failure_rules, failure_rules_fields);

static const struct mo_field failure_evidence_fields[] = {
	MO_D(failure_evidence, source, MO_STR, "where the line was read"),
	MO_D(failure_evidence, line, MO_INT, "number of the line, from 1; unset: an exit status"),
	MO_D(failure_evidence, text, MO_STR, "the line itself"),
};
const struct mo_desc failure_evidence_desc = MO_DESC(failure_evidence, failure_evidence_fields);

static const struct mo_field failure_verdict_fields[] = {
	MO_D_ENUM(failure_verdict, class, failure_class_names, "class of the failure"),
	MO_D_VEC(failure_verdict, evidence, &failure_evidence_desc, "lines that it rests on"),
	MO_D(failure_verdict, first_rank, MO_INT,
	     "number of the rank that failed first; unset: the lines do not tell"),
	MO_D(failure_verdict, rule, MO_STR, "id of the deciding rule; unset: none decided",
	     .omit = true),
	MO_D(failure_verdict, why, MO_STR, "what the deciding rule says; unset: none decided"),
};
const struct mo_desc failure_verdict_desc = MO_DESC(failure_verdict, failure_verdict_fields);
