/* What nodes have, and what runs on it: drawn, and as data. */
#pragma once
#include "lib/http/server.h"

void api_nodes_topology(void *arg, struct http_request *r);
void api_cluster_topology(void *arg, struct http_request *r);
