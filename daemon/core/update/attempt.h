/* Parts of the running attempt that several records change: its counts over steps, its ranks'
 * places, and its end. Called by the sources of update only. */
#pragma once
#include "daemon/core/state/live.h"

void job_clear_attempt(struct job *j);
/* The step's part in the job's counts: taken away before a change, put back after it. */
void step_count(const struct core *c, struct job *j, const struct step *st, int sign);
void rank_place(const struct job *j, const struct place *p, struct rank *k);
/* in the mesh, once its sizes are known */
void ranks_place(struct job *j);
