/* What is known of one job. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc samples_view_desc;

void api_job_ranks(void *arg, struct http_request *r);
void api_job_metrics(void *arg, struct http_request *r);
void api_job_checkpoints(void *arg, struct http_request *r);
void api_job_report(void *arg, struct http_request *r);
void api_job_ledger(void *arg, struct http_request *r);
void api_job_incidents(void *arg, struct http_request *r);
void api_job_why(void *arg, struct http_request *r);
