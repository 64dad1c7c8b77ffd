/* See http.h. */
#include "agent/image/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/core/image/oci.h"
#include "lib/base/fd.h"
#include "lib/model/reference.h"

#define CONNECT_S 30L
#define LINKS_MAX 5L
#define CHALLENGE "www-authenticate:"
#define CHALLENGE_MAX 4096

struct transfer {
	struct http *http;
	const struct http_request *request;
	struct mo_buf challenge;
	int failed; /* what take() returned */
};

int http_init(struct http *h, int64_t silence_s, struct mo_error *err)
{
	*h = (struct http){ .silence_s = silence_s };
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		h->easy = curl_easy_init();
	return h->easy ? 0 : mo_error_set(err, -EIO, "libcurl cannot be initialised");
}

void http_done(struct http *h)
{
	if (h->easy)
		curl_easy_cleanup(h->easy);
	h->easy = NULL;
}

void http_answer_done(struct http_answer *a)
{
	free(a->challenge);
	*a = (struct http_answer){ 0 };
}

char *http_escape(const char *s)
{
	char *escaped = curl_easy_escape(NULL, s, (int)strlen(s));
	char *copy = mo_strdup(escaped ? escaped : "");

	curl_free(escaped);
	return copy;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t skip = strlen(CHALLENGE);

	n *= size;
	if (n >= strlen("HTTP/") && strncmp(data, "HTTP/", 5) == 0)
		mo_buf_reset(&t->challenge); /* of the next answer, behind a link */
	if (n > skip && n < CHALLENGE_MAX && strncasecmp(data, CHALLENGE, skip) == 0) {
		size_t used = n - skip;

		while (used > 0 && (data[skip + used - 1] == '\r' || data[skip + used - 1] == '\n'))
			used--;
		mo_buf_str(&t->challenge, t->challenge.len ? ", " : "");
		mo_buf_add(&t->challenge, data + skip, used);
	}
	return t->challenge.len > CHALLENGE_MAX ? 0 : n;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	long status = 0;

	n *= size;
	curl_easy_getinfo(t->http->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200 && status != 206)
		return n;
	t->failed = t->request->take(t->request->arg, status == 200, data, n);
	return t->failed < 0 ? 0 : n;
}

/* A registry says where its tokens are, and a password goes there. */
static bool is_loopback(const char *url)
{
	CURLU *u = curl_url();
	char *host = NULL;
	bool found = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
		     curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
		     reference_is_loopback(&(struct reference){ .host = host });

	curl_free(host);
	curl_url_cleanup(u);
	return found;
}

static void limit_protocols(CURL *easy, bool plain)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, plain ? "http,https" : "https");
	curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, plain ? "http,https" : "https");
#else
	long allowed = CURLPROTO_HTTPS | (plain ? CURLPROTO_HTTP : 0);

	curl_easy_setopt(easy, CURLOPT_PROTOCOLS, allowed);
	curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, allowed);
#endif
}

static struct curl_slist *set_up(struct transfer *t)
{
	const struct http_request *q = t->request;
	CURL *easy = t->http->easy;
	struct curl_slist *headers = NULL;
	char range[32];

	curl_easy_reset(easy);
	t->http->error[0] = 0;
	curl_easy_setopt(easy, CURLOPT_URL, q->url);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->http->error);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "moe/" MO_VERSION);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(easy, CURLOPT_MAXREDIRS, LINKS_MAX);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, MO_MIN(CONNECT_S, t->http->silence_s));
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)t->http->silence_s);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	limit_protocols(easy, t->http->plain && is_loopback(q->url));
	if (q->from > 0) {
		snprintf(range, sizeof(range), "%lld-", (long long)q->from);
		curl_easy_setopt(easy, CURLOPT_RANGE, range);
	}
	if (q->authorization)
		headers = curl_slist_append(headers, q->authorization);
	if (q->accept)
		headers = curl_slist_append(headers, q->accept);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	return headers;
}

/* Whether another try ends the same. */
static bool is_final(CURLcode code)
{
	return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
	       code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
	       code == CURLE_TOO_MANY_REDIRECTS;
}

int http_get(struct http *h, const struct http_request *q, struct http_answer *ret,
	     struct mo_error *err)
{
	struct transfer t = { .http = h, .request = q };
	struct curl_slist *headers = set_up(&t);
	CURLcode code = curl_easy_perform(h->easy);
	const char *why = h->error[0] ? h->error : curl_easy_strerror(code);

	curl_slist_free_all(headers);
	*ret = (struct http_answer){ 0 };
	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &ret->status);
	if (t.challenge.len)
		ret->challenge = mo_buf_take(&t.challenge);
	mo_buf_done(&t.challenge);
	if (t.failed < 0)
		return t.failed;
	if (code == CURLE_OPERATION_TIMEDOUT)
		return mo_error_set(err, -EAGAIN, "no answer, or no bytes of it, for %lld s",
				    (long long)h->silence_s);
	if (code != CURLE_OK)
		return mo_error_set(err, is_final(code) ? IMAGE_REFUSED : -EAGAIN, "%s", why);
	return 0;
}
