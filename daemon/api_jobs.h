/* Jobs, and the verbs on them but submit (api_submit.h). */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc cancel_body_desc, restart_body_desc;

void api_jobs_list(void *arg, struct http_request *r);
void api_jobs_get(void *arg, struct http_request *r);
void api_jobs_cancel(void *arg, struct http_request *r);
void api_jobs_pause(void *arg, struct http_request *r);
void api_jobs_resume(void *arg, struct http_request *r);
void api_jobs_restart(void *arg, struct http_request *r);
