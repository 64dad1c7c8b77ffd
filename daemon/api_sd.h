/* GET /v1/sd: where Prometheus finds the agents. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc sd_target_desc; /* one of the list */
void api_sd(void *arg, struct http_request *r);
