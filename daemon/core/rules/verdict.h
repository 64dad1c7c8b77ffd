/* What kind of failure an attempt's end was, and whose: who was first (blame.h), together with what
 * the ranks that ended said last and what the kernels of their nodes said at that time, read by the
 * signatures of classify.h. Pure; called by policy.c.
 *
 * The first rank's word counts before its peers', for these mostly tell of its death. Three things
 * are stronger: hardware that says of itself that it is broken, wherever that is said; what anybody
 * says, where the first rank ended without a word of its own; and what the rest says where the
 * first one only tells of a peer. A rank that was killed by us says nothing by its exit, but its
 * words count: it may have been about to end by itself.
 *
 * Without signatures (core_signatures() was not called) it is what blame.h says. */
#pragma once
#include "daemon/core/rules/blame.h"
#include "lib/model/failure.h"

struct core;

/* a finding is near when it is that much older than the death at most */
#define VERDICT_NEAR_US (120 * 1000000LL)

struct verdict {
	int class;          /* enum failure_class; FAIL_OK never */
	struct blame blame; /* the rank that the deciding words are of */
	char *rule, *why;   /* the signature that decided, what it means; NULL: none did */
	/* lines that decided; the kernel's with its node before them */
	char **lines;
	size_t n_lines;
	/* that a part of the node is broken is no program's word: its kernel says so, or a check */
	bool proved;
};
/* b: of blame_find() or blame_root(); B_NONE: what was decided at the first evidence stays. What
 * is in it belongs to the job. */
struct verdict verdict_of(const struct core *c, const struct job *j, const struct blame *b);
void verdict_done(struct verdict *v);
/* What a finding says of a failure by itself, with what that means; NULL: nothing. Caller frees.
 * broken: a part of the node is. */
char *verdict_finding(const struct core *c, const struct check_result *r, bool *ret_broken);
/* What tells one kind of failure from another, for counting: class and signature, or cause. Caller
 * frees. */
char *verdict_signature(const struct verdict *v, const char *cause);
/* Lines for a person: those that decided, then the last ones of the rank that are near its end. */
void verdict_evidence(const struct core *c, const struct job *j, const struct verdict *v,
		      char ***texts, size_t *n);
