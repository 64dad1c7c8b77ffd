/* What is checked of a request's head, in the order that server.h names, before its body is
 * taken; see request_check.c. */
#pragma once
#include "lib/http/internal.h"

const char *request_header(const struct http_request *r, const char *name);
/* Everything that can be said from the head. Answers and returns false when refused. */
bool request_check_head(struct http_request *r, const char *version, bool has_body,
			uint64_t length);
