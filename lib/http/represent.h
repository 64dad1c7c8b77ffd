/* What of an answer need not travel: see represent.c. */
#pragma once
#include "lib/base/buf.h"
#include "lib/http/internal.h"

/* Of an answer of status 200 to GET: its tag in ret (ETag). True: the client has it already, says
 * the request (If-None-Match), and 304 is the answer. */
bool represent_tag(const struct http_request *r, const void *body, size_t n,
		   char ret[REPRESENT_TAG_MAX]);
/* The body, whose tag that is, as gzip into ret (empty before); false: as it is, because the client
 * does not take that (Accept-Encoding), or it would not help. */
bool represent_packed(const struct http_request *r, const char *content_type, const char *tag,
		      const void *body, size_t n, struct mo_buf *ret);
void represent_new(struct http_server *s);
void represent_done(struct http_server *s);
