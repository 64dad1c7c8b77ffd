/* What one caller may ask for. Agents: each node a part of this thread's time, so that one that
 * sends without end, or the worst that it can, takes little from the others; what an agent says
 * comes nowhere near. A token of no node, which is for loopback alone, is not counted. What one
 * user may ask for, so that the others are served too: changes and open streams. Unfinished jobs
 * are counted by the core (daemon/core/rules/verbs.c), plan searches by
 * daemon/core/rules/searches.c, connections and wrong credentials by lib/http. Roles user and
 * viewer; agents, operators and admins are not limited. */
#pragma once
#include "daemon/manager.h"

struct quotas;
void quotas_new(struct manager *m);
struct quotas *quotas_free(struct quotas *q);
/* Before a handler streams, or waits for a node. False after 429 was sent. */
bool quota_hold(struct manager *m, struct http_request *r);
/* Callback of the server, before every handler; arg = manager. False after 429 was sent. */
bool quota_admit(void *arg, struct http_request *r);
/* Likewise, before the body is read. */
bool quota_admit_head(void *arg, struct http_request *r);
/* What a message of an agent cost: in the handler, from begin to end, and in the turn (node: of
 * its token, NULL none). */
struct quota_message {
	char payer[80];
	int64_t began_ns, bytes;
};
void quota_begin(struct manager *m, const char *token_id, size_t bytes, struct quota_message *q);
void quota_end(struct manager *m, const struct quota_message *q);
void quota_charge(struct manager *m, const char *node, int64_t cpu_us);
