/* What the controller answers: acknowledgements, and what follows from them. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

void agent_core_on_welcome(struct agent_core *s, const struct agent_welcome *w, int64_t now,
			   struct agent_out *out);
void agent_core_on_reply(struct agent_core *s, const struct agent_event *ev, int64_t now,
			 struct agent_out *out);
void agent_core_on_no_answer(struct agent_core *s, const struct agent_event *e, int64_t now);
