/* What the controller orders. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

void agent_core_command(struct agent_core *s, const struct command *c, int64_t now,
			struct agent_out *out);
void agent_core_scanned(struct agent_core *s, const struct scan_result *result, int64_t now,
			struct agent_out *out);
void agent_core_checked(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_drop_scan(struct agent_core *s, size_t i);
