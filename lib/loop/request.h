/* One libcurl easy handle set up from a mo_http_call: shared by the client on the loop and the
 * blocking fetch. Private to lib/loop. */
#pragma once
#include "lib/loop/curl.h"
#include "lib/loop/http_client.h"

struct request {
	CURL *easy;
	struct curl_slist *headers;
	char *body; /* own copy: curl reads it until the end */
	size_t max_body;
	struct mo_buf answer;
	bool too_big;
	bool local; /* over a UNIX socket */
	char error[CURL_ERROR_SIZE];
};
/* -EINVAL for a url that is none of http:// https:// unix: . r must be zeroed; request_done
 * frees it in any case. */
int request_init(struct request *r, const struct mo_http_call *call);
void request_done(struct request *r);
/* Appends to r->answer; 0 when it would grow above max_body (curl then ends the transfer). */
size_t request_keep(struct request *r, const char *data, size_t n);
/* One sentence why there is no answer. */
const char *request_error(const struct request *r, CURLcode code);
