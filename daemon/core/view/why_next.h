/* What comes next for a job, or what a person is to do; see why_next.c. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/state/waiting.h"

const char *why_next(const struct job *j, const struct waiting *w);
/* All of an attempt was started: a job that recovers waits for its first iteration. */
bool why_attempt_runs(const struct job *j);
/* What a running job needs of a person. */
char *why_next_of_running(const struct job *j);
/* The incident that ended the job; NULL: none did. */
const struct incident *why_ended_by(const struct job *j);
