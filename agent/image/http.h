/* One request after the other to registries, each within a time of silence. */
#pragma once
#include <curl/curl.h>

#include "lib/base/buf.h"
#include "lib/base/error.h"

struct http {
	CURL *easy; /* keeps the connection */
	int64_t silence_s;
	bool plain; /* without TLS, to this machine only */
	char error[CURL_ERROR_SIZE];
};
struct http_request {
	const char *url;
	const char *authorization; /* a whole header; NULL: none */
	const char *accept;        /* a whole header; NULL: none */
	int64_t from;              /* the first byte that is wanted */
	/* Gets the bytes of an answer 200, or 206 where it begins at `from`; a negative errno ends
	 * it. */
	int (*take)(void *arg, bool from_the_start, const char *data, size_t n);
	void *arg;
};
struct http_answer {
	long status;
	char *challenge; /* NULL: none */
};
void http_answer_done(struct http_answer *a);
int http_init(struct http *h, int64_t silence_s, struct mo_error *err);
void http_done(struct http *h);
/* Links are followed; what authorizes goes to no other host. 0 when there is an answer, whatever it
 * says; -EAGAIN with err when the network failed and may not next time, what take() returned, or
 * IMAGE_REFUSED. http_answer_done() in any case. */
int http_get(struct http *h, const struct http_request *q, struct http_answer *ret,
	     struct mo_error *err);
/* A part of a query; caller frees. */
char *http_escape(const char *s);
