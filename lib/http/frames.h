/* What comes by roads: see frames.c. */
#pragma once
#include "lib/http/internal.h"

/* The connection of the request that became a road: MHD asks for it again, which is its end. */
enum MHD_Result road_again(struct http_request *asked);
/* MHD has closed it: what was not answered is nobody's any more. */
void road_gone(struct http_request *asked);
/* There is none any more. */
void roads_done(struct http_server *s);
