/* One HTTP request that blocks: for moectl alone. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"
#include "lib/loop/http_client.h"

/* Sends it and waits for the answer; without libcurl where the url is a UNIX
 * socket. on_data (may be NULL) gets body pieces of a stream as they come; a non-zero return ends
 * it. */
int mo_http_fetch(const struct mo_http_call *call,
		  int (*on_data)(void *arg, const char *data, size_t n), void *arg, int *ret_status,
		  struct mo_buf *ret_body, struct mo_error *err);
