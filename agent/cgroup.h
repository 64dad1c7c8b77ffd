/* The cgroup2 directories that the agent makes for steps where no systemd does:
 * BASE/jJOB.aATTEMPT. */
#pragma once
#include "agent/manager.h"

/* Where the agent's own cgroup2 directory goes; NULL none, err says why. Caller frees. */
char *cgroup_find_base(const struct agent_config *c, struct mo_error *err);
/* The step's own; a step that has none needs none. */
int cgroup_make(const struct step_dir *d);
/* Kills what is left in it; true: nothing is. */
bool cgroup_kill(const struct step_dir *d);
/* When no process is left in it; refused by the kernel otherwise. */
void cgroup_remove(const struct step_dir *d);
