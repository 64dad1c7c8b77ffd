/* A controller whose past is not the one that its agents know: made anew (moed --init) or put back
 * from a backup (moed --restore), which begins an incarnation; or a state directory that was put
 * back by copying, which does not. Pure.
 *   epoch     the incarnation in its upper bits, its number of starts below: above whatever any
 *             agent obeyed before, also when the incarnation before was lost with its number
 *   job ids   of a restored state go on with a million and a hundred for each second since the
 *             controller was made; attempts of its unfinished jobs with a thousand and one for each
 *             second since the submit: none is used twice, whatever happened after the backup, and
 *             whichever backup is restored next
 *   waiting   jobs of the backup get no attempt before each node of the backup has been heard (or
 *             fenced): one of them may hold an attempt that the backup does not know
 *   unknown   steps are left as they are and named, their job and their node wait, until they end
 *             or an operator decides (moectl resolve)
 * An agent that obeyed a higher epoch than this controller's proves that this state is an old copy:
 * it is reported, and the node gets no work. */
#pragma once
#include "daemon/core/state/state.h"

#define EPOCH_STARTS MO_EPOCH_STARTS                 /* starts in one incarnation */
#define INCARNATION_ZERO_US (1577836800LL * 1000000) /* 2020-01-01 */

/* Epoch before the first start of a new incarnation: of now, and above `before` in any case. */
int64_t incarnation_epoch(int64_t before, int64_t wall_us);
/* "start 3 of the incarnation of 2026-...", or the plain number of earlier versions. Caller
 * frees. */
char *epoch_text(int64_t epoch);
/* "j-7.a3"; caller frees. */
char *step_name(int64_t job, int64_t attempt);
/* An operator wants this unknown step of the node ended. */
bool step_discarded(const struct node *n, int64_t job, int64_t attempt);
