/* What is free where a job's checkpoints lie. Called by update.c alone. */
#pragma once
#include "daemon/core/state/state.h"

/* As a node found it, after what else it found was taken. */
void space_measured(struct job *j, const struct scan_result *r, int64_t time);
