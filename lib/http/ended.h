/* What nobody waits for any more. */
#pragma once
#include "lib/http/internal.h"

/* The token of r may do nothing any more. */
bool ended_token(const struct http_request *r);
/* Ends what is held or streamed for users who have gone. */
void ended_clients(struct http_server *s);
