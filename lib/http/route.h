/* The table of routes, asked for one request. */
#pragma once
#include "lib/http/internal.h"

/* Fills r->segments from r->path; false when there are too many. */
bool route_split(struct http_request *r);
/* The route of r's method and path. NULL: not found, or, with *ret_path set to a route of that
 * path, another method. */
const struct http_route *route_find(const struct http_server *s, const struct http_request *r,
				    const struct http_route **ret_path);
/* "GET, POST" of the methods that path has. */
void route_allow(const struct http_server *s, const struct http_request *r, struct mo_buf *b);
