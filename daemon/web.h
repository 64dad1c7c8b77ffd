/* The dashboard's files. */
#pragma once
#include "lib/http/server.h"

void api_web(void *arg, struct http_request *r);
