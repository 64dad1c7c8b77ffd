/* GET /metrics: Prometheus text. */
#pragma once
#include "lib/http/server.h"

void api_metrics(void *arg, struct http_request *r);
