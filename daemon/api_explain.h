/* Environment and binding of a rank, explained. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc explained_view_desc;

void api_job_env(void *arg, struct http_request *r);
void api_job_bind(void *arg, struct http_request *r);
