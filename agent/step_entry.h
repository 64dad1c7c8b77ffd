/* The spool entry of a step (agent/core/stepd/spool.h): launch.json of its directory, written
 * before anything of it acts, found again by later agents. */
#pragma once
#include "agent/step_dir.h"

/* Adoption at start: AE_SPOOLED_STEP for every directory, and its notes. */
void step_entries_adopt(struct manager *m);
/* Makes the directory and writes it; binding is planned here. 0 or a negative errno with err. */
int step_entry_write(struct step_dir *d, const struct command *c, struct mo_error *err);
/* "unit", its own cgroup2 directory, or NULL: none; caller frees. */
char *step_cgroup(const struct step_dir *d);
