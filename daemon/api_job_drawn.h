/* What is drawn of a job: the curve of its run, and its ranks as a matrix. */
#pragma once
#include "daemon/manager.h"

/* GET /v1/jobs/{id}/metrics?points=N: samples behind that place, in buckets. */
void api_job_curve(struct manager *m, struct http_request *r, const struct job *j, int64_t attempt,
		   int64_t iteration);
void api_job_matrix(void *arg, struct http_request *r);
