/* See registry.h. */
#include "agent/image/registry.h"

#include <errno.h>
#include <string.h>

#include "agent/core/image/challenge.h"
#include "agent/core/image/oci.h"
#include "agent/image/credentials.h"
#include "lib/wire/decode.h"

#define ACCEPT \
	"Accept: application/vnd.oci.image.index.v1+json, " \
	"application/vnd.oci.image.manifest.v1+json, " \
	"application/vnd.docker.distribution.manifest.list.v2+json, " \
	"application/vnd.docker.distribution.manifest.v2+json"
#define TOKEN_MAX (64 * 1024)

struct token {
	char *token, *access_token;
};
static const struct mo_field token_fields[] = {
	MO_D(token, token, MO_STR, "the token"),
	MO_D(token, access_token, MO_STR, "the same, as OAuth 2.0 names it"),
};
static const struct mo_desc token_desc = MO_DESC(token, token_fields);
MO_DEFINE_DONE(token)

struct text {
	struct mo_buf buf;
	size_t max;
};

static int keep(void *arg, bool from_the_start, const char *data, size_t n)
{
	struct text *t = arg;

	if (t->buf.len + n > t->max)
		return -E2BIG;
	mo_buf_add(&t->buf, data, n);
	return 0;
}

int registry_init(struct registry *r, const struct reference *of, const char *auth_file,
		  int64_t silence_s, struct mo_error *err)
{
	*r = (struct registry){ .of = of, .auth_file = auth_file };
	int result = http_init(&r->http, silence_s, err);

	r->http.plain = reference_is_loopback(of);
	if (result == 0 && auth_file)
		result = credentials_read(auth_file, of->host, &r->basic, err);
	return result;
}

static void forget(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(TAKE_PTR(*secret));
}

void registry_done(struct registry *r)
{
	http_done(&r->http);
	forget(&r->basic);
	forget(&r->authorization);
}

/* What the answer's number means. */
static int judge(const struct registry *r, long status, const char *what, struct mo_error *err)
{
	if (status == 200 || status == 206)
		return 0;
	if (status == 416)
		return mo_error_set(err, -ESPIPE, "%s has less bytes than were wanted", what);
	if (status == 401 || status == 403) {
		mo_error_set(err, IMAGE_REFUSED, "%s says %ld for %s: it is not there, or %s",
			     r->of->host, status, what,
			     r->basic ? "not for this user" : "not for everybody");
		mo_error_hint(err,
			      r->basic ? "check the entry of %s in the file of --auth"
				       : "name credentials for %s with --auth FILE",
			      r->of->host);
		return IMAGE_REFUSED;
	}
	if (status == 404)
		return mo_error_set(err, IMAGE_REFUSED, "%s has no %s", r->of->host, what);
	return mo_error_set(err, status == 429 || status >= 500 ? -EAGAIN : IMAGE_REFUSED,
			    "%s says %ld for %s", r->of->host, status, what);
}

static int take_token(struct registry *r, const struct text *body, struct mo_error *err)
{
	_cleanup_(token_done) struct token t;
	const char *value;

	mo_desc_init(&token_desc, &t);
	if (wire_decode(&token_desc, body->buf.data ? body->buf.data : "", body->buf.len, false, &t,
			NULL) < 0)
		return mo_error_set(err, IMAGE_REFUSED, "%s gave a token that is none",
				    r->of->host);
	value = t.token ? t.token : t.access_token;
	if (!value || !*value || strpbrk(value, "\r\n"))
		return mo_error_set(err, IMAGE_REFUSED, "%s gave no token", r->of->host);
	forget(&r->authorization);
	r->authorization = mo_printf("Authorization: Bearer %s", value);
	return 0;
}

static int ask_token(struct registry *r, const struct challenge *c, struct mo_error *err)
{
	_cleanup_(mo_freep) char *scope = http_escape(c->scope ? c->scope : ""),
				 *service = http_escape(c->service ? c->service : "");
	_cleanup_(mo_freep) char *url =
		mo_printf("%s%cservice=%s&scope=%s", c->realm, strchr(c->realm, '?') ? '&' : '?',
			  service, scope);
	_cleanup_(http_answer_done) struct http_answer a = { 0 };
	struct text body = { .max = TOKEN_MAX };
	char *basic = r->basic ? mo_printf("Authorization: Basic %s", r->basic) : NULL;
	struct http_request q = { .url = url, .authorization = basic, .take = keep, .arg = &body };
	int result = http_get(&r->http, &q, &a, err);

	if (result == 0)
		result = judge(r, a.status, "a token", err);
	if (result == 0)
		result = take_token(r, &body, err);
	forget(&basic);
	mo_buf_done(&body.buf);
	return result;
}

/* r->authorization as this answer wants it; 1: it wants nothing that we have. */
static int authorize(struct registry *r, const struct http_answer *a, struct mo_error *err)
{
	_cleanup_(challenge_done) struct challenge c = { 0 };

	if (!a->challenge || !challenge_read(a->challenge, &c))
		return 1;
	if (c.bearer)
		return ask_token(r, &c, err);
	if (!r->basic)
		return 1;
	forget(&r->authorization);
	r->authorization = mo_printf("Authorization: Basic %s", r->basic);
	return 0;
}

static int get(struct registry *r, struct http_request *q, const char *what, struct mo_error *err)
{
	for (int tries = 0;; tries++) {
		_cleanup_(http_answer_done) struct http_answer a = { 0 };

		q->authorization = r->authorization;
		int result = http_get(&r->http, q, &a, err);

		if (result < 0)
			return result;
		/* tokens hold for minutes, layers take longer */
		if (a.status != 401 || tries > 0)
			return judge(r, a.status, what, err);
		result = authorize(r, &a, err);
		if (result != 0)
			return result < 0 ? result : judge(r, a.status, what, err);
	}
}

static char *url_of(const struct registry *r, const char *kind, const char *which)
{
	return mo_printf("%s://%s/v2/%s/%s/%s", r->http.plain ? "http" : "https", r->of->host,
			 r->of->name, kind, which);
}

int registry_manifest(struct registry *r, const char *wanted, struct mo_buf *ret,
		      struct mo_error *err)
{
	_cleanup_(mo_freep) char *url = url_of(r, "manifests", wanted);
	_cleanup_(mo_freep) char *what = mo_printf("%s %s", r->of->name, wanted);
	struct text body = { .max = OCI_DOCUMENT_MAX };
	struct http_request q = { .url = url, .accept = ACCEPT, .take = keep, .arg = &body };
	int result = get(r, &q, what, err);

	if (result == -E2BIG)
		result = mo_error_set(err, IMAGE_REFUSED, "%s: its manifest is too large", what);
	mo_buf_done(ret);
	*ret = body.buf;
	return result;
}

int registry_blob(struct registry *r, const char *digest, int64_t from,
		  int (*take)(void *arg, bool from_the_start, const char *data, size_t n),
		  void *arg, struct mo_error *err)
{
	_cleanup_(mo_freep) char *url = url_of(r, "blobs", digest);
	struct http_request q = { .url = url, .from = from, .take = take, .arg = arg };

	return get(r, &q, digest, err);
}
