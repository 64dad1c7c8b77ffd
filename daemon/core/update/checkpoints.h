/* Changes of a job's list of checkpoints, from announcements and scans. Called by the sources of
 * update only. */
#pragma once
#include "daemon/core/state/state.h"

void checkpoint_note(struct job *j, const struct note *n, int64_t time);
void checkpoint_scan(struct job *j, const struct scan_result *r, int64_t time);
/* after restart --from: what lies beyond is resumed no more */
void checkpoint_supersede(struct job *j, int64_t resume, int64_t attempt, int64_t time);
/* of this attempt, announced, and it went elsewhere */
void checkpoint_withdraw(struct job *j, int64_t iteration);
/* the attempt went on from what it resumed from */
void checkpoint_loaded(struct job *j);
/* of what the attempt that is over has written again without saying so */
void checkpoint_forget_manifests(struct job *j);
/* a fresh start over them was asked for */
void checkpoint_pass_over(struct job *j);
