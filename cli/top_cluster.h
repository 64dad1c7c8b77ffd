/* What `moectl top` says of the cluster, printed once or kept open. */
#pragma once
#include "cli/client.h"

#define CLUSTER_STATES 6
/* What runs comes first, then what is about to, then what waits. */
extern const char *const cluster_states[CLUSTER_STATES];
/* Three lines: versions and nodes, GPUs, jobs by state; of GET /v1/cluster. */
void cluster_print(const struct cli *cli, struct json_object *doc);
/* Jobs that are not over; of those that wait the newest. An exit status, its line printed. */
int cluster_jobs(struct cli *cli, struct answer *ret);
