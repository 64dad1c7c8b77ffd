/* Commands beside ranks; see api_exec.c. */
#pragma once
#include "daemon/exec.h"
#include "lib/http/server.h"

void api_job_exec(void *arg, struct http_request *r);
void api_job_exec_get(void *arg, struct http_request *r);
extern const struct mo_desc exec_body_desc;
