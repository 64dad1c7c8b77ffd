/* Jobs in quarantine, for the shell (daemon/quarantine.c) and a start; outside of turns. */
#pragma once
#include "daemon/core/core.h"

/* Takes a job out of the state; *ret (initialised,
 * or NULL) gets it, and stays as it is when there is none yet. Its id is given to no other, and
 * what nodes hold of it they keep. */
void core_take_out(struct core *core, int64_t job, struct job *ret);
bool core_is_out(const struct core *core, int64_t job);
/* Puts it back and takes its content. -EINVAL with err: it was not taken out, or what it has is
 * another's by now. */
int core_put_back(struct core *core, struct job *job, struct mo_error *err);
/* n records of starts cannot be read: their epochs were used. */
void core_epochs_lost(struct core *core, int64_t n);
