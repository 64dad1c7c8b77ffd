/* update.c's part for REC_HISTORY: jobs that ended and events leave. */
#pragma once
#include "daemon/core/state/record.h"

struct core;

int update_history(struct core *c, const struct record *r);
/* The job is over and leaves; the caller closes the gap in state.jobs. */
void history_free(struct core *c, struct job *j);
