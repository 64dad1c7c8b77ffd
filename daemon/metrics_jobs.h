/* Metrics of jobs that are not over, so that the number of series is bounded by what runs. */
#pragma once
#include "daemon/manager.h"
#include "lib/base/buf.h"

void metrics_jobs(struct manager *m, struct mo_buf *b);
