/* Who may keep a connection: see guard.c. */
#pragma once
#include "lib/http/internal.h"

void guard_arrived(struct connection *c);
/* The credential of r was accepted. NULL, or why its user may not have this connection (429);
 * caller frees. */
char *guard_accepted(struct http_request *r);
void guard_left(struct connection *c);
/* Microseconds that the connection gets for its next request. */
int64_t guard_patience(const struct connection *c);
void guard_sweep(struct http_server *s, int64_t now_us);
void guard_done(struct http_server *s);
/* The request's credential is wrong; true: one too many of its source. */
bool guard_wrong(struct http_request *r);
/* As configured, as far as the descriptors of this process allow. */
int64_t guard_connections_max(int64_t configured);
