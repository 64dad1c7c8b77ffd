/* A command beside a running rank; see exec.c. */
#pragma once

#include <stdbool.h>

struct job;
struct turn;

/* Why this caller may not run commands beside ranks of the job, nor see what came of one; NULL: he
 * may. Caller frees. */
char *exec_forbidden(const struct job *j, const char *user, bool admin);
/* IN_EXEC. Answered with 202 and its event when it may run; the shell then asks the node. */
void job_exec(struct turn *t);
