/* An engine's own configuration, as the job's record has it. */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/http/server.h"

void api_job_config(void *arg, struct http_request *r);
/* What is said (410) of a job that gave its recipe and configuration up; caller frees. */
char *api_let_go(const struct job *j);
