/* HTTP requests over TCP or a UNIX socket (url "http://host:port", "https://..." or
 * "unix:/path"), many at once, on the loop, by libcurl. TCP_NODELAY, no proxies, no redirects. */
#pragma once
#include <systemd/sd-event.h>
#include "lib/base/buf.h"
#include "lib/base/error.h"

struct mo_http; /* client: one per process */
/* -ENOPKG: no libcurl */
int mo_http_new(sd_event *loop, struct mo_http **ret, struct mo_error *err);
struct mo_http *mo_http_free(struct mo_http *h);
struct mo_http_call {
	const char *url, *path, *method, *body;
	size_t body_len;
	const char *token;
	const char *content_type;
	int64_t timeout_ms;
	size_t max_body;
	const char *const *headers;
	const char *ca_file;
};
/* fn gets status 0 with error text when no answer came; body is valid during the call. *ret_id
 * identifies the call for cancelling. Strings are copied. */
typedef void (*mo_http_fn)(void *arg, int status, const char *body, size_t n, const char *error);
int mo_http_send(struct mo_http *h, const struct mo_http_call *call, mo_http_fn fn, void *arg,
		 uint64_t *ret_id);
/* Of the answer whose fn runs: the seconds of its Retry-After, MO_RETRY_AFTER_MAX_S at most; 0: it
 * has none, or a time that is over. */
#define MO_RETRY_AFTER_MAX_S 86400
int64_t mo_http_retry_after_s(const struct mo_http *h);
void mo_http_cancel(struct mo_http *h, uint64_t id);
