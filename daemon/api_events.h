/* Events, as a list or followed. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc events_view_desc;

void api_job_events(void *arg, struct http_request *r);
void api_events(void *arg, struct http_request *r);
