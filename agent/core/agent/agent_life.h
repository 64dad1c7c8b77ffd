/* One step's life: from the spool entry to the last note. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

/* Started when the fence is on disk: a full disk refuses the launch instead of starting what a
 * restarted agent would not remember. */
void agent_core_start_fenced(struct agent_core *s, struct agent_step *e, struct agent_out *out);
/* Carries a wanted stop or kill to where the step is. */
void agent_step_order(struct agent_step *e, int64_t now, struct agent_out *out);
/* The notes that end a step whose supervisor is dead; repeated until they are read back. */
void agent_step_write_last(struct agent_step *e, int64_t now, struct agent_out *out);
/* At the start: a step that an agent before this one left, and that all of them are known. */
void agent_core_on_spooled(struct agent_core *s, const struct agent_event *ev,
			   struct agent_out *out);
void agent_core_on_started(struct agent_core *s, int64_t now, struct agent_out *out);
/* What happened to one step. */
void agent_core_on_step(struct agent_core *s, const struct agent_event *ev, int64_t now,
			struct agent_out *out);
