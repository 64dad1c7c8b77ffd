/* What one user may ask for, so that the others are served too: changes (each makes events, of which the newest 10,000 are kept) and open streams. Unfinished jobs are counted by the core
 * (daemon/core/jobs.c), plan searches by helper.c, connections and wrong credentials by lib/http. Roles user and viewer; agents, operators and admins are not limited. */
#pragma once
#include "daemon/manager.h"

struct quotas;
void quotas_new(struct manager *m);
struct quotas *quotas_free(struct quotas *q);
/* Callback of the server, before every handler; arg = manager. False after 429 was sent. */
bool quota_admit(void *arg, struct http_request *r);
