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
/* A connection alone, TLS included: fn gets status 0 with error when there is none, else 200 and no
 * body. From then on it is the caller's, by *ret_id, until mo_http_cancel() closes it. */
int mo_http_connect(struct mo_http *h, const struct mo_http_call *call, mo_http_fn fn, void *arg,
		    uint64_t *ret_id);
/* Of such a connection: its descriptor, to be watched and no more; bytes in and out: how many, 0
 * the other side has closed it (read), -EAGAIN none now, another error: it is of no more use. */
int mo_http_fd(struct mo_http *h, uint64_t id);
ssize_t mo_http_read(struct mo_http *h, uint64_t id, void *data, size_t n);
ssize_t mo_http_write(struct mo_http *h, uint64_t id, const void *data, size_t n);
void mo_http_cancel(struct mo_http *h, uint64_t id);
