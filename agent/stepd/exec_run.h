/* The process that runs one command beside the ranks (exec_run.c). */
#pragma once
#include "agent/stepd/stepd.h"
#include "lib/model/exec.h"

/* Forks it; the file `result` is there when the command is over. Its pid, or a negative errno. */
pid_t exec_run(const struct stepd *s, const struct exec_ask *ask, const char *result);
/* The same file for a command that does not run. */
void exec_leave_refusal(const char *result, const char *why);
