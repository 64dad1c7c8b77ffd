/* The cluster in figures, and the two probes. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc probe_view_desc;

void api_cluster(void *arg, struct http_request *r);
void api_healthz(void *arg, struct http_request *r);
void api_readyz(void *arg, struct http_request *r);
