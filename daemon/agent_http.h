/* Messages of agents over HTTP: the handlers of POST /v1/agent/... (arg = manager). */
#pragma once
#include "daemon/manager.h"

void agent_http_hello(void *arg, struct http_request *r);
void agent_http_sync(void *arg, struct http_request *r);
void agent_http_urgent(void *arg, struct http_request *r);
void agent_http_answer(void *arg, struct http_request *r);
/* GET FRAME_PATH: from then on the same messages come by frames (lib/http/road.c). */
void agent_http_road(void *arg, struct http_request *r);
void agent_http_token(void *arg, struct http_request *r);
