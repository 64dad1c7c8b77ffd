/* Who makes a job slow, by what ranks do; see straggler_activity.c. Called by straggler.c. */
#pragma once
#include "daemon/core/rules/activity_judge.h"
#include "daemon/core/state/live.h"

struct rec_straggler;
struct turn;

/* There is something to judge by. */
bool activity_due(const struct job_beats *b, int64_t now);
/* Fills *ret (a straggler's rank, sign, times, lost_pct, alone, text, evidence): one stands out for
 * long enough. */
bool activity_search(struct turn *t, const struct job *j, struct job_beats *b,
		     struct rec_straggler *ret);
/* One rank stands out by one reading and no other agrees, in words; NULL: none does. Caller
 * frees. */
char *activity_hint_text(const struct state *s, const struct job *j, int64_t now);
/* Whoever stood out by it does no more. */
bool activity_ended(struct turn *t, const struct job *j, struct job_beats *b);
