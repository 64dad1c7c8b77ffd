/* GET /v1/nodes/{name}/image: whether an image fits a node. */
#pragma once
#include "daemon/manager.h"

struct http_request;
void api_nodes_image(void *arg, struct http_request *r);
