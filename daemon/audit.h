/* Who was refused: an event and a log entry with his name. Who did something is recorded by the
 * core (audit_emit). */
#pragma once
#include "daemon/manager.h"

void audit_new(struct manager *m);
struct audit *audit_free(struct audit *a);
/* Callback of the server. */
void audit_refused(void *arg, const struct http_request *r, const char *why);
