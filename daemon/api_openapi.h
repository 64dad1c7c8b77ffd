/* GET /openapi.json: the routes and what they take and answer. */
#pragma once
#include "lib/http/server.h"

void api_openapi(void *arg, struct http_request *r);
void api_schema_recipe(void *arg, struct http_request *r);
