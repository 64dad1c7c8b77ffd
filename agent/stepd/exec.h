/* A command beside the ranks (exec.c). */
#pragma once
#include "agent/stepd/stepd.h"

/* What the file exec.ID.ask of the step's directory asks for is started, once; exec.ID.json will
 * say what came of it. */
void exec_order(struct stepd *s, int64_t id);
/* Whether it was the process of such a command. */
bool exec_reaped(struct stepd *s, const siginfo_t *si);
