/* Metrics of at most a hundred jobs that are not over: whoever queues thousands makes no scrape
 * large. */
#pragma once
#include "daemon/manager.h"
#include "lib/base/buf.h"

void metrics_jobs(struct manager *m, struct mo_buf *b);
