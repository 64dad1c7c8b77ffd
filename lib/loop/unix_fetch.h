/* One blocking request over a UNIX socket, without libcurl (curl.h says why). Only for
 * mo_http_fetch(). */
#pragma once
#include "lib/loop/http_client.h"

/* 0, or -ECONNREFUSED (nobody took it), -ECONNRESET (the answer broke off), -ETIMEDOUT, -EPROTO,
 * -EFBIG, -EINVAL; *ret_why then says it in words, a constant. body gets what on_data does not. A
 * non-zero return of on_data ends the request with 0. */
int unix_fetch(const struct mo_http_call *call,
	       int (*on_data)(void *arg, const char *data, size_t n), void *arg, int *ret_status,
	       struct mo_buf *body, const char **ret_why);
/* Why a UNIX socket could not be connected to: the system's error in words that say what to look
 * at. */
const char *unix_connect_error(int number);
