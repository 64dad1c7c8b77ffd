/* engine.prepare (hook.c): one program on this node before any rank. */
#pragma once
#include "agent/stepd/stepd.h"

void hook_start(struct stepd *s); /* SX_PREPARE: answered by SE_PREPARED */
/* True when it was engine.prepare that died. */
bool hook_reaped(struct stepd *s, const siginfo_t *si);
/* How long it took, and its last lines to its refusal. */
void hook_note(struct stepd *s, struct note *n);
