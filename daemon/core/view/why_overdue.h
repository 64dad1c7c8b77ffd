/* What of a running job is overdue, and where to look: a supervisor that does not answer, a rank
 * that ended while others stand, an iteration that does not come. Derived from state only. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/why_view.h"

/* Reasons for each of them. Returns what a person is to do about the first, caller frees; NULL:
 * nothing is overdue. */
char *why_overdue(const struct state *s, const struct job *j, int64_t now, struct why_view *w);
