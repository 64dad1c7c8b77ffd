/* Nodes, and the verbs on them. */
#pragma once
#include "lib/base/desc.h"
#include "lib/http/server.h"

extern const struct mo_desc drain_body_desc, undrain_body_desc, fence_body_desc, ack_body_desc,
	resolve_body_desc, resolved_view_desc;

void api_nodes_list(void *arg, struct http_request *r);
void api_nodes_get(void *arg, struct http_request *r);
void api_nodes_why(void *arg, struct http_request *r);
void api_stack_drift(void *arg, struct http_request *r);
void api_nodes_drain(void *arg, struct http_request *r);
void api_nodes_undrain(void *arg, struct http_request *r);
void api_nodes_ack(void *arg, struct http_request *r);
void api_nodes_fence(void *arg, struct http_request *r);
void api_steps_resolve(void *arg, struct http_request *r);
