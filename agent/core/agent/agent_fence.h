/* The highest attempt of each job, and the epoch: what was obeyed. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

/* the highest attempt of it, 0: none */
int64_t agent_core_highest(const struct agent_core *s, int64_t job);
void agent_core_raise_fence(struct agent_core *s, int64_t job, int64_t attempt);
/* job 0: the epoch */
void agent_core_save_fence(const struct agent_core *s, int64_t job, struct agent_out *out);
void agent_core_learn_epoch(struct agent_core *s, int64_t epoch, struct agent_out *out);
