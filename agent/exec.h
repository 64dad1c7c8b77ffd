/* Commands beside ranks (`moectl exec`), on their way between controller and supervisor. See
 * exec.c. */
#pragma once
#include "agent/manager.h"

struct execs;
int execs_new(struct manager *m, struct execs **ret);
struct execs *execs_free(struct execs *x);
/* The same question again changes nothing. False: it is of another kind. */
bool exec_query(struct execs *x, const struct command *c);
