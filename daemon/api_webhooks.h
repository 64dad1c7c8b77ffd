/* /v1/webhooks: where events are posted to, and what came of it. */
#pragma once
#include "lib/http/server.h"

void api_webhooks_list(void *arg, struct http_request *r);
void api_webhooks_test(void *arg, struct http_request *r);
