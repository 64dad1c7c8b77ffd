/* GET /v1/jobs/{id}/logs: output of ranks, fetched from their agents piece by piece. */
#pragma once
#include "daemon/manager.h"

struct queries;
void queries_new(struct manager *m);
struct queries *queries_free(struct queries *q);
