/* See request.h. TCP_NODELAY is libcurl's default and set anyway; proxies and redirects are
 * never followed: a controller's address is exactly what the user gave. */
#include "lib/loop/request.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/assert.h"
#include "lib/loop/http_client.h"
#include "lib/loop/unix_fetch.h"

#define CONNECT_TIMEOUT_MS 10000L
#define MAX_BODY_DEFAULT (64u << 20)

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	return request_keep(userdata, data, size * n);
}

size_t request_keep(struct request *r, const char *data, size_t n)
{
	mo_assert(r->answer.len <= r->max_body);
	if (r->answer.len + n > r->max_body) {
		r->too_big = true;
		return 0;
	}
	mo_buf_add(&r->answer, data, n);
	return n;
}

/* Of a UNIX socket curl would tell of "localhost port 80", which nobody asked for. */
static const char *socket_error(const struct request *r)
{
	long number = 0;

	curl->easy_getinfo(r->easy, CURLINFO_OS_ERRNO, &number);
	return unix_connect_error((int)number);
}

const char *request_error(const struct request *r, CURLcode code)
{
	if (r->too_big)
		return "the answer is larger than allowed";
	if (r->local && code == CURLE_COULDNT_CONNECT)
		return socket_error(r);
	return r->error[0] ? r->error : curl->easy_strerror(code);
}

static void add_header(struct request *r, const char *text)
{
	struct curl_slist *l = curl->slist_append(r->headers, text);

	if (!l)
		abort();
	r->headers = l;
}

static int set_url(struct request *r, const struct mo_http_call *call)
{
	_cleanup_(mo_freep) char *url = NULL;

	if (mo_starts_with(call->url, "unix:")) {
		r->local = true;
		curl->easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, call->url + 5);
		url = mo_printf("http://localhost%s", call->path);
	} else if (mo_starts_with(call->url, "http://") || mo_starts_with(call->url, "https://")) {
		size_t n = strlen(call->url);
		while (n > 0 && call->url[n - 1] == '/')
			n--;
		url = mo_printf("%.*s%s", (int)n, call->url, call->path);
	} else {
		return -EINVAL;
	}
	curl->easy_setopt(r->easy, CURLOPT_URL, url);
	return 0;
}

static void set_headers(struct request *r, const struct mo_http_call *call)
{
	if (call->token) {
		_cleanup_(mo_freep) char *h = mo_printf("Authorization: Bearer %s", call->token);
		add_header(r, h);
	}
	if (call->content_type) {
		_cleanup_(mo_freep) char *h = mo_printf("Content-Type: %s", call->content_type);
		add_header(r, h);
	}
	add_header(r, "Expect:"); /* no 100-continue round trip */
	for (size_t i = 0; call->headers && call->headers[i]; i++)
		add_header(r, call->headers[i]);
	curl->easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
}

static void set_method(struct request *r, const struct mo_http_call *call)
{
	const char *method = call->method ? call->method : "GET";

	if (strcmp(method, "GET") == 0)
		return;
	if (strcmp(method, "POST") != 0)
		curl->easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, method);
	if (strcmp(method, "POST") == 0 || call->body_len > 0) {
		r->body = mo_strndup(call->body ? call->body : "", call->body_len);
		curl->easy_setopt(r->easy, CURLOPT_POST, 1L);
		curl->easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
		curl->easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
	}
}

int request_init(struct request *r, const struct mo_http_call *call)
{
	mo_assert(call->timeout_ms >= 0);
	assert(!r->easy && !r->body && r->answer.len == 0 && call->url && call->path);
	assert(call->body || call->body_len == 0);
	r->easy = curl->easy_init();
	if (!r->easy)
		return -ENOMEM;
	int e = set_url(r, call);
	if (e < 0)
		return e;
	r->max_body = call->max_body ? call->max_body : MAX_BODY_DEFAULT;
	set_method(r, call);
	set_headers(r, call);
	curl->easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->error);
	curl->easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(r->easy, CURLOPT_TCP_NODELAY, 1L);
	curl->easy_setopt(r->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl->easy_setopt(r->easy, CURLOPT_PROXY, "");
	curl->easy_setopt(r->easy, CURLOPT_NOPROXY, "*");
	curl->easy_setopt(r->easy, CURLOPT_FOLLOWLOCATION, 0L);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl->easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else /* Ubuntu 22.04 */
	curl->easy_setopt(r->easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	curl->easy_setopt(r->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(r->easy, CURLOPT_USERAGENT, "moe/" MO_VERSION);
	if (call->timeout_ms > 0) {
		curl->easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
		curl->easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT_MS,
				  (long)MO_MIN(call->timeout_ms, CONNECT_TIMEOUT_MS));
	} else {
		curl->easy_setopt(r->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	}
	if (call->ca_file)
		curl->easy_setopt(r->easy, CURLOPT_CAINFO, call->ca_file);
	curl->easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl->easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
	return 0;
}

void request_done(struct request *r)
{
	if (r->easy) {
		curl->easy_cleanup(r->easy);
		curl->slist_free_all(r->headers);
	}
	free(r->body);
	mo_buf_done(&r->answer);
}
