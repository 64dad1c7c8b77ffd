/* Answers beside those of server.h. */
#pragma once
#include "lib/http/internal.h"

/* 401, with the scheme. */
void reply_refuse(struct http_request *r, const char *detail);
/* An answer while the body is still coming: MHD takes none then, so it is written past it. The
 * connection has to be closed after it. */
void reply_cut(struct http_request *r, int status, const char *fmt, ...) _printf_(3, 4);
enum MHD_Result reply_queue(struct http_request *r);
