/* An HTTP/1.1 answer, taken apart as it comes: head, then a body by its length, in chunks, or up to
 * the end of the connection. Does no input. Private to lib/loop. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

#define HTTP_HEAD_MAX 65536
enum http_answer_part {
	ANSWER_HEAD,
	ANSWER_LENGTH,
	ANSWER_CHUNK_SIZE,
	ANSWER_CHUNK,
	ANSWER_CHUNK_END,
	ANSWER_TRAILER,
	ANSWER_UNTIL_CLOSE,
	ANSWER_OVER
};
struct http_answer {
	int part;           /* enum http_answer_part */
	int status;         /* 0: the head is not there yet */
	bool head_only;     /* set by the caller: the answer to HEAD has no body */
	struct mo_buf line; /* of the head or of a chunk, up to its end */
	uint64_t left;      /* bytes of the body, or of the chunk */
};
/* Gives every piece of the body to fn; its non-zero return ends the call with that value. 0: more
 * is to come, or it is over (part says); -EPROTO: this is no HTTP/1.1. */
int http_answer_feed(struct http_answer *a, const char *data, size_t n,
		     int (*fn)(void *arg, const char *data, size_t n), void *arg);
/* The connection was closed: was that the end of the answer? */
bool http_answer_whole(const struct http_answer *a);
void http_answer_done(struct http_answer *a);
