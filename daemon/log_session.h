/* Output of ranks on its way to a client: a session per request asks the agents of its ranks
 * (agent_link.h) and writes what comes to a stream, until all is said or the client is gone. Called
 * by api_logs.c. */
#pragma once
#include "daemon/manager.h"
#include "lib/http/server.h"

struct log_place {
	int64_t rank;
	int64_t offset;   /* bytes of the log to begin at; -1: before the last lines */
	int64_t since_us; /* core time: not with what was written before; MO_NONE: with it */
	const char *node; /* where it ran; NULL nowhere */
};
struct log_wish {
	int64_t job, attempt;
	int64_t lines; /* of each rank; MO_NONE: everything */
	bool follow, records;
	struct log_place *ranks; /* one at least */
	size_t n_ranks;
};
/* Holds r and answers it. What w says is copied. */
void log_session_begin(struct manager *m, struct http_request *r, const struct log_wish *w);
/* The sessions of a manager. */
struct queries;
void queries_new(struct manager *m);
struct queries *queries_free(struct queries *q);
