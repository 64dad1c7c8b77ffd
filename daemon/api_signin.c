/* Sign-in links: whoever holds a token gets a code that signs a browser in once, within minutes.
 * Only the code stands in the link, behind a '#', which browsers send to nobody; the token stays
 * where it is. Codes live in memory: a restart of moed forgets them. Of one user few are open,
 * and nobody's give way to another's. */
#include "daemon/api_signin.h"

#include <gnutls/gnutls.h>
#include <string.h>
#include "daemon/api.h"
#include "daemon/api_tokens.h"
#include "daemon/auth.h"
#include "lib/base/fd.h"
#include "lib/wire/encode.h"

#define LIFETIME_US (5 * 60 * 1000000LL)
#define CODE_BYTES 16
#define OPEN_MAX 256       /* codes at once */
#define OPEN_OF_USER_MAX 4 /* the oldest of his gives way */

struct signin {
	char *code, *token_id, *user;
	enum role role;
	int64_t until;
};
struct signins {
	struct signin items[OPEN_MAX];
};

void signins_new(struct manager *m)
{
	m->signins = mo_alloc(sizeof(*m->signins));
}

static void forget(struct signin *s)
{
	free(s->code);
	free(s->token_id);
	free(s->user);
	*s = (struct signin){ 0 };
}

struct signins *signins_free(struct signins *s)
{
	for (size_t i = 0; s && i < OPEN_MAX; i++)
		forget(&s->items[i]);
	free(s);
	return NULL;
}

/* Where the next one of this user goes, forgotten and empty; NULL: there is no room. */
static struct signin *slot_for(struct signins *all, const struct signin *of, int64_t now)
{
	struct signin *empty = NULL, *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < OPEN_MAX; i++) {
		struct signin *s = &all->items[i];

		if (s->code && s->until <= now)
			forget(s);
		if (!s->code) {
			empty = s;
			continue;
		}
		if (of->user ? !mo_streq(s->user, of->user) : !mo_streq(s->token_id, of->token_id))
			continue;
		n++;
		if (!oldest || s->until < oldest->until)
			oldest = s;
	}
	if (n < OPEN_OF_USER_MAX)
		return empty;
	forget(oldest);
	return oldest;
}

struct signin_view {
	char *path;
	int64_t seconds;
};
static const struct mo_field signin_view_fields[] = {
	MO_D(signin_view, path, MO_STR, "the link, below the address of the controller"),
	MO_D(signin_view, seconds, MO_INT, "how long it can be used, seconds"),
};
const struct mo_desc signin_view_desc = MO_DESC(signin_view, signin_view_fields);

void api_signin_create(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct http_caller *c = http_caller(r);
	int64_t now = mo_clock_boot_us();

	if (!c->token_id || c->by_cookie) {
		http_problem(r, 422,
			     "a sign-in link is made from a bearer token: send one in the "
			     "Authorization header");
		return;
	}
	struct signin of = { .token_id = (char *)c->token_id, .user = (char *)c->user },
		      *s = slot_for(m->signins, &of, now);

	if (!s) {
		http_problem(r, 429,
			     "%d sign-in links are open, the most there may be: try again in a few "
			     "minutes",
			     OPEN_MAX);
		return;
	}
	*s = (struct signin){ .code = mo_random_hex(CODE_BYTES),
			      .token_id = mo_strdup(c->token_id),
			      .user = mo_strdup(c->user),
			      .role = c->role,
			      .until = now + LIFETIME_US };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/#sign-in=%s", s->code);
	const struct signin_view v = { path, LIFETIME_US / 1000000 };

	wire_encode(&signin_view_desc, &v, &b);
	http_reply(r, 201, "application/json", b.data, b.len,
		   (const char *const[]){ "Cache-Control: no-store", NULL });
}

struct use_body {
	char *code;
};
static const struct mo_field use_body_fields[] = {
	MO_D(use_body, code, MO_STR, "code of the sign-in link"),
};
const struct mo_desc use_body_desc = MO_DESC(use_body, use_body_fields);

static struct signin *find(struct signins *all, const char *code)
{
	struct signin *found = NULL;

	for (size_t i = 0; code && strlen(code) == 2 * CODE_BYTES && i < OPEN_MAX; i++)
		if (all->items[i].code &&
		    gnutls_memcmp(all->items[i].code, code, 2 * CODE_BYTES) == 0)
			found = &all->items[i];
	return found;
}

void api_signin_use(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	struct use_body body = { 0 };

	if (!api_body(r, &use_body_desc, &body))
		return;
	struct signin *s = find(m->signins, body.code);
	mo_desc_done(&use_body_desc, &body);
	if (s && s->until > mo_clock_boot_us() && auth_alive(m, s->token_id))
		api_session_reply(m, r, s->token_id, s->user, s->role);
	else
		http_problem(r, 403,
			     "this sign-in link was used already or is too old: 'moectl local up' "
			     "prints a new one");
	if (s)
		forget(s);
}
