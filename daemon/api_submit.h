/* POST /v1/jobs. */
#pragma once
#include "daemon/manager.h"
#include "lib/http/server.h"

void api_jobs_submit(void *arg, struct http_request *r);
/* Whether what the caller asks for may be done as root, or as a system account. */
bool api_may_be_root(const struct manager *m, const struct http_caller *c);
