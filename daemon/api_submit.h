/* POST /v1/jobs. */
#pragma once
#include "lib/http/server.h"

void api_jobs_submit(void *arg, struct http_request *r);
