/* What a node has, drawn. */
#pragma once
#include "lib/http/server.h"

void api_nodes_topology(void *arg, struct http_request *r);
