/* Failure signatures (config/failures/signatures.yaml) and the verdict about a dead attempt:
 * plain values. Decided by daemon/core/rules/classify.h. */
#pragma once
#include "lib/base/desc.h"

enum failure_class {
	FAIL_USER_ERROR,
	FAIL_TRANSIENT,
	FAIL_SUSPECT,
	FAIL_NODE_FAULT,
	FAIL_HANG,
	FAIL_NUMERICAL,
	FAIL_STORAGE,
	FAIL_COLLATERAL,
	FAIL_PREEMPTED,
	FAIL_OK,
	_FAILURE_CLASS_N
};
extern const char *const failure_class_names[_FAILURE_CLASS_N];
/* What follows a failure of a class (daemon/core/rules/remedy.h; recovery.policy of a recipe). */
enum failure_action {
	DO_STOP,      /* no further attempt */
	DO_RETRY,     /* the next attempt, on whatever nodes */
	DO_ELSEWHERE, /* without the node where it began, if there is room */
	DO_WAIT,      /* for what is outside the job: such failures are not counted */
	DO_CORDON,    /* elsewhere, and the node takes no work any more */
	_FAILURE_ACTION_N
};
extern const char *const failure_action_names[_FAILURE_ACTION_N];
/* Where a line was read: the program's output, the kernel's log, or the exit status as text
 * ("exit:1", "signal:9"). */
enum failure_source { FROM_ANY, FROM_LOG, FROM_KERNEL, FROM_EXIT, _FAILURE_SOURCE_N };
extern const char *const failure_source_names[_FAILURE_SOURCE_N];

struct failure_rule {
	char *id;
	int class; /* enum failure_class */
	/* the lowest of all rules that match decides; between equals the earliest line */
	int64_t order;
	int source; /* enum failure_source; FROM_ANY: log and kernel */
	char **match;
	size_t n_match; /* PCRE2, caseless, any of them, searched in one line */
	/* PCRE2: lines that also match one of these do not count */
	char **unless;
	size_t n_unless;
	int late;  /* class once the log showed `late_iteration`; -1 = the same */
	bool weak; /* does not count when the program is known to have exited 0 */
	char *why;
};
struct failure_rules {
	char *progress; /* PCRE2 with group iteration: a line of progress */
	int64_t late_iteration;
	/* PCRE2 with group rank: which rank a line is about; groups may repeat (?J) */
	char *rank;
	/* PCRE2 with groups rank and last: how far a rank's collectives came when a watchdog
	 * fired */
	char *collective;
	struct failure_rule *rules;
	size_t n_rules;
};
/* line: 1-based, unknown for an exit status */
struct failure_evidence {
	char *source;
	int64_t line;
	char *text;
};
struct failure_verdict {
	int class; /* enum failure_class */
	struct failure_evidence *evidence;
	size_t n_evidence;
	int64_t first_rank; /* MO_NONE: the lines do not tell */
	char *rule, *why;   /* of the deciding rule; NULL: none decided */
};
extern const struct mo_desc failure_rule_desc, failure_rules_desc, failure_evidence_desc,
	failure_verdict_desc;
