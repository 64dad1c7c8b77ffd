/* The route of logs, and where a rank ran. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/manager.h"
#include "lib/http/server.h"

void api_job_logs(void *arg, struct http_request *r);
/* Where the rank ran in that attempt: steps are kept until the agent forgot them, else it is
 * most likely where it runs now. NULL = nowhere. */
const char *api_node_of(const struct job *j, int64_t attempt, int64_t rank);
