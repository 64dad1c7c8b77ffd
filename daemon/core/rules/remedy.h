/* What follows a failure, as data beside the transitions of a job (transitions.h): class of the
 * failure x when = action. The first row whose condition holds is taken; recovery.policy of the
 * recipe replaces the action of a class, but where the condition is WHEN_GIVEN. docs/states.md is
 * this table. Pure; called by policy.c and views.
 *
 * What never happens: a node is cordoned by the word of a program alone; a class has no row. */
#pragma once
#include "daemon/core/rules/streak.h"
#include "daemon/core/rules/verdict.h"

enum remedy_when {
	WHEN_ALWAYS,
	WHEN_GIVEN,      /* what the user gave cannot work, and no attempt changes that */
	WHEN_UNTRAINED,  /* the job never made an iteration */
	WHEN_REBOOTED,   /* the node is in another boot, or fenced */
	WHEN_HELD,       /* GPUs are not given back; what found that cordons the node */
	WHEN_PROVED,     /* the node's kernel or checks say so too */
	WHEN_AGAIN,      /* the failure before began on the same node */
	WHEN_WENT_BACK,  /* from the same iterations, or past others, as often as it may */
	WHEN_EVERYWHERE, /* the same before on another node, which this attempt did without: told
			  * to, or for the third time; and not of what it loaded */
	_WHEN_N
};
/* How often: LIMITED by count, PATIENT by count and time, UNLIMITED. */
enum remedy_budget { BUDGET_LIMITED, BUDGET_PATIENT, BUDGET_UNLIMITED, _BUDGET_N };
struct remedy {
	int class, when, action, budget;
};
extern const struct remedy remedies[];
extern const size_t n_remedies;
extern const char *const remedy_when_names[_WHEN_N], *const remedy_budget_names[_BUDGET_N];

/* What the table and the recipe say. */
struct remedy remedy_of(const struct job *j, const struct verdict *v, const struct failing *f);
/* The other node of WHEN_EVERYWHERE; NULL: there is none. */
const char *remedy_elsewhere_too(const struct job *j, const struct failing *f);
/* What a person can do about a failure of the class; NULL: nothing is to be done. */
const char *remedy_next(const char *class);
