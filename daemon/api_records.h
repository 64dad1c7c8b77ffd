/* The records of one job as the store has them. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc record_line_desc, records_view_desc;

void api_job_records(void *arg, struct http_request *r);
