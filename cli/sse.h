/* Server-Sent Events, the part we use: "id:" and "data:" lines, an empty line ends a message;
 * everything else is ignored. Pure. */
#pragma once
#include "lib/base/buf.h"

struct sse {
	struct mo_buf line, data;
	char last_id[32]; /* of the last complete message, "" = none */
	char id[32];
	bool overlong; /* the current line is longer than SSE_LINE_MAX: dropped */
};
#define SSE_LINE_MAX (1u << 20)
void sse_done(struct sse *s);
/* Calls fn for every complete message. A non-zero return of fn stops and is returned. */
int sse_feed(struct sse *s, const char *bytes, size_t n, int (*fn)(void *arg, const char *data),
	     void *arg);
