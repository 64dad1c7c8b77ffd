/* The step's spool entry, as the agent left it (agent/core/stepd/spool.h). */
#pragma once
#include "agent/stepd/stepd.h"

/* What is to be run, into s->spool; step_id, by which the step is found should that be lost, is
 * written. 0, or a negative errno with err. */
int entry_load(struct stepd *s, struct mo_error *err);
