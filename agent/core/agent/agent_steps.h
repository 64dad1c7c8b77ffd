/* The steps that the agent has, by job and attempt. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

struct agent_step *agent_core_find(const struct agent_core *s, int64_t job, int64_t attempt);
struct agent_step *agent_core_add(struct agent_core *s, int64_t job, int64_t attempt,
				  const struct launch *l, enum agent_step_phase phase);
void agent_core_drop(struct agent_core *s, struct agent_step *e);
/* Answers an order that must not or cannot be carried out: proof, from memory, that no process of
 * this attempt is here. */
void agent_core_refuse(struct agent_core *s, int64_t job, int64_t attempt, const char *cause,
		       const char *text);
