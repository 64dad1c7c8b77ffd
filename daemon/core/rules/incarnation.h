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
 *   unknown   steps are kept and named, their job and their node wait, until they end or an
 *             operator decides (moectl resolve)
 * An agent that obeyed a higher epoch than this controller's proves that this state is an old copy:
 * it is told, and the node gets no work. */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/model/message.h"

#define EPOCH_STARTS MO_EPOCH_STARTS               /* starts in one incarnation */
#define INCARNATION_ZERO_US (1577836800LL * 1000000)      /* 2020-01-01 */
#define RESTORED_JOBS 1000000
#define RESTORED_UNKNOWN_MAX 1000000   /* attempts after the backup that a node is believed to know of */
#define RESTORED_JOBS_S 100                        /* more than anybody submits for long */
#define RESTORED_ATTEMPTS 1000
#define RESTORED_ATTEMPTS_S 1
#define RESTORED_EVENTS 1000000000LL
#define RESTORED_EVENTS_S 1000000LL
#define RESTORED_S_MAX (36500 * 86400LL)           /* whatever a clock says */
#define RESTORED_WAIT_DOWNS 3                      /* times down_us: for nodes that joined after the backup */

/* Epoch before the first start of a new incarnation: of now, and above `before` in any case. */
int64_t incarnation_epoch(int64_t before, int64_t wall_us);
/* "start 3 of the incarnation of 2026-...", or the plain number of earlier versions. Caller frees. */
char *epoch_text(int64_t epoch);
/* "j-7.a3"; caller frees. */
char *step_name(int64_t job, int64_t attempt);
/* Why the job must not get an attempt now; NULL = it may. Caller frees. *ret_until: when that ends
 * by itself, else untouched. */
char *incarnation_holds(const struct state *s, const struct job *j, int64_t now, int64_t *ret_until);
/* The unknown steps of the job, "j-7.a3 on n1, n2"; NULL none; caller frees. */
char *unknown_steps_text(const struct state *s, int64_t job);
/* Those that a node holds, "j-7.a3, j-9.a1"; NULL: none, or none is named. Caller frees. */
char *strange_text(const struct node *n);
