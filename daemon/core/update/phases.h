/* What the ranks do (job_progress.phase), by the words of their nodes. A save or an evaluation that
 * is taken for training ends a healthy job, as a hang: so it lasts until each step that spoke of
 * one says that it is over, or an iteration behind it comes. The words of one step come in the
 * order in which they were said; those of another may be old, of a node that was cut off since, and
 * the clocks of two do not tell. at: when the note was written, in core time. */
#pragma once
#include "daemon/core/state/state.h"

void phase_word(struct job *j, struct step *st, const struct note *n, int64_t at);
void phase_saving(struct job *j, struct step *st, const struct note *n, int64_t at);
/* The ledger is charged for it, whether it was announced or not. Of an earlier save than the one
 * under way it changes nothing. */
void phase_saved(struct job *j, const struct note *n, int64_t at);
/* A newer iteration than was known; the ledger is charged before, by its caller. */
void phase_trains(struct job *j, const struct note *n);
