/* What comes next for a job, or what a person is to do; see why_next.c. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/state/waiting.h"

const char *why_next(const struct job *j, const struct waiting *w);
/* What a running job needs of a person. */
char *why_next_of_running(const struct job *j);
/* The incident that ended the job; NULL: none did. */
const struct incident *why_ended_by(const struct job *j);
