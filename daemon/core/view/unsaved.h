/* A running job that has not saved where it should, and what is known of its last save; see
 * unsaved.c. */
#pragma once
#include "daemon/core/state/state.h"

/* base: where a failure now would go back to. */
struct unsaved {
	char *text, *last_save;
	int64_t base;
};

bool checkpoint_unsaved(const struct job *j, struct unsaved *ret);
void checkpoint_unsaved_done(struct unsaved *u);
/* Where the next attempt of a job that has run begins, as far as its ledger tells; 0 = at the
 * beginning. */
int64_t checkpoint_next(const struct job *j);
