/* POST /v1/jobs/{id}/fabric. */
#pragma once
#include "lib/http/server.h"

void api_job_fabric(void *arg, struct http_request *r);
