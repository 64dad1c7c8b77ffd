/* The failures of a job that belong together: those since an attempt won anything. What follows a
 * failure goes by them: how long the pause before the next attempt is, which nodes it avoids,
 * whether the code is to blame, when it is given up. Derived from the incidents alone. Pure; called
 * by policy.c, remedy.c, elsewhere.c and views.
 *
 * An attempt won when the job came further than ever before and lasted STREAK_WON_US: one that
 * makes an iteration and dies at once is as much a loop as one that makes none. */
#pragma once
#include "daemon/core/state/state.h"

#define STREAK_WON_US (600 * 1000000LL)
#define STREAK_PATIENCE_US (3600 * 1000000LL)

/* The failure at hand, which is no incident yet: its parts belong to the caller. */
struct failing {
	const char *class, *rule, *cause, *node; /* rule, node: NULL = none */
	int64_t at;
	bool loading; /* it counts against the checkpoint that was loaded */
};
/* It is of the kind of the incident: class and signature, or cause. */
bool streak_same(const struct incident *inc, const struct failing *f);
/* Index of the first incident that the failure at hand is in a row with; n_incidents: none. */
size_t streak_begin(const struct job *j, const struct failing *f);
/* The same once it is an incident itself. */
size_t streak_open(const struct job *j);
/* Until the next attempt, microseconds: by how many failures of its kind there are in a row. */
int64_t streak_pause(const struct job *j, const struct failing *f);
/* How often its kind failed without a new checkpoint, and any kind, this failure included; since
 * when; by how many iterations the job came further meanwhile. */
struct budget {
	int64_t same, any, since, won;
};
struct budget streak_budget(const struct job *j, const struct failing *f, int64_t newest);
/* NULL: another attempt follows; else which budget is spent. patient: not before it lasted
 * STREAK_PATIENCE_US. Caller frees. */
char *streak_spent(const struct job *j, const struct budget *b, bool patient);
/* "2 of 3 failures of this kind without a new checkpoint, ..." Caller frees. */
char *streak_budget_text(const struct job *j, const struct budget *b, bool patient);
