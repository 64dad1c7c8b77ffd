/* Whether a save went elsewhere, or to checkpoint.dir by another name. The answer comes with the
 * order of verification; called by update.c's parts, and by rules that wait for the answer. */
#pragma once
#include "daemon/core/state/state.h"

void doubt_begin(struct job *j, const char *path, int64_t iteration);
/* after notes: a save that began elsewhere may be over */
void doubt_begun(struct job *j);
void doubt_drop(struct job *j);
/* a node will answer: the job does not end well before */
bool doubt_awaited(const struct state *s, const struct job *j);
void doubt_answer(struct job *j, const struct scan_result *r, int64_t time);
