/* One blocking request without a loop: moectl only. */
#include "lib/loop/http_fetch.h"

#include <errno.h>
#include "lib/loop/request.h"
#include "lib/base/assert.h"
#include "lib/loop/http_client.h"
#include "lib/loop/unix_fetch.h"

struct fetch {
	struct request request;
	int (*on_data)(void *arg, const char *data, size_t n);
	void *arg;
	bool ended;
};

static void fetch_done(struct fetch *f)
{
	request_done(&f->request);
}

/* Only the body of a success is a stream; a problem document is kept whole. */
static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct fetch *f = userdata;
	long status = 0;

	curl->easy_getinfo(f->request.easy, CURLINFO_RESPONSE_CODE, &status);
	if (!f->on_data || status >= 300)
		return request_keep(&f->request, data, size * n);
	if (f->on_data(f->arg, data, size * n) != 0) {
		f->ended = true;
		return 0;
	}
	return size * n;
}

static int error_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT: return -ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE: return -EPROTO;
	case CURLE_WRITE_ERROR: return -EFBIG;
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_PARTIAL_FILE: return -ECONNRESET;
	default: return -ECONNREFUSED;
	}
}

static int over_curl(struct fetch *f, const struct mo_http_call *call, int *ret_status,
		     struct mo_error *err)
{
	long status = 0;

	int r = curl_load(err);
	if (r < 0)
		return r;
	r = request_init(&f->request, call);
	if (r < 0)
		return mo_error_set(err, r,
				    "%s: not an address; give http(s)://host:port or unix:/path",
				    call->url);
	curl->easy_setopt(f->request.easy, CURLOPT_WRITEFUNCTION, on_body);
	curl->easy_setopt(f->request.easy, CURLOPT_WRITEDATA, f);
	CURLcode code = curl->easy_perform(f->request.easy);
	curl->easy_getinfo(f->request.easy, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK && !f->ended)
		return mo_error_set(err, error_of(code), "%s: %s", call->url,
				    request_error(&f->request, code));
	*ret_status = (int)status;
	return 0;
}

static int over_socket(struct fetch *f, const struct mo_http_call *call, int *ret_status,
		       struct mo_error *err)
{
	const char *why = NULL;

	int r = unix_fetch(call, f->on_data, f->arg, ret_status, &f->request.answer, &why);
	return r < 0 ? mo_error_set(err, r, "%s: %s", call->url, why) : 0;
}

int mo_http_fetch(const struct mo_http_call *call,
		  int (*on_data)(void *arg, const char *data, size_t n), void *arg, int *ret_status,
		  struct mo_buf *ret_body, struct mo_error *err)
{
	_cleanup_(fetch_done) struct fetch f = { .on_data = on_data, .arg = arg };

	assert(call->url && call->path && ret_status);
	int r = mo_starts_with(call->url, "unix:") ? over_socket(&f, call, ret_status, err)
						   : over_curl(&f, call, ret_status, err);
	if (r < 0)
		return r;
	if (ret_body) {
		mo_buf_done(ret_body);
		*ret_body = f.request.answer;
		f.request.answer = (struct mo_buf){ 0 };
	}
	return 0;
}
