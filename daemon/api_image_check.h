/* GET /v1/nodes/{name}/image: whether an image fits a node. */
#pragma once
#include "daemon/manager.h"

struct http_request;
/* Has the caller an account on the nodes, in whose name something may be done there? False after
 * 4xx was sent. */
bool api_caller_account(struct manager *m, struct http_request *r);
void api_nodes_image(void *arg, struct http_request *r);
