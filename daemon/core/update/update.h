/* The one door through which the state changes: a record is applied, at the first time, at
 * replay and in the simulator alike. Called by turn_emit() and by the shell's replay. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
/* Applies one stored record. -EINVAL: version or content this program does not understand (the
 * shell then refuses to start). */
int core_update(struct core *core, const struct record *record);
