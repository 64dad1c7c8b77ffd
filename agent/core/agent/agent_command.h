/* What the controller orders, and what came of it. Pointers are borrowed; now: the shell's clock in
 * us. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

/* An order that came in an answer. It may come again and is obeyed once; of an unknown kind it does
 * nothing. */
void agent_core_command(struct agent_core *s, const struct command *c, int64_t now,
			struct agent_out *out);
/* A scan that was ordered has its result, which is sent at once. */
void agent_core_scanned(struct agent_core *s, const struct scan_result *result, int64_t now,
			struct agent_out *out);
/* The on-failure checks that were ordered are through. */
void agent_core_checked(struct agent_core *s, int64_t now, struct agent_out *out);
/* Forgets the i-th of s->scans. */
void agent_core_drop_scan(struct agent_core *s, size_t i);
