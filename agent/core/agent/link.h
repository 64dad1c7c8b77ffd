/* The link to the controller: when a hello, a sync or an urgent message leaves. */
#pragma once
#include "agent/core/agent/agent_core_state.h"

/* appends */
struct agent_effect *agent_effect(struct agent_out *out, int type, int64_t job, int64_t attempt);
void agent_core_send_urgent(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_send_sync(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_say_hello(struct agent_core *s, int64_t now, struct agent_out *out);
void agent_core_hello_late(struct agent_core *s, int64_t now);
/* after_us: the controller wants no hello before; 0: it does not say. */
void agent_core_lose_link(struct agent_core *s, int64_t now, int64_t after_us);
