/* Tokens are "moe_<id>_<64 hex digits>"; the state keeps SHA-256 of the whole text. Look-up by id, compare in constant time. A session cookie is
 * "moes_<id>_<expiry>_<HMAC-SHA256>" under STATE/session.key: it survives a restart of moed and dies with its token. Names of UNIX peers are cached for a minute,
 * because the name service may be slow. */
#include "daemon/auth.h"
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>
#include "daemon/turn.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define TOKEN_PREFIX "moe_"
#define SESSION_PREFIX "moes_"
#define ID_CHARS 8
#define SECRET_BYTES 32
#define KEY_BYTES 32
#define MAC_BYTES 32
#define PEER_CACHE_US (60 * 1000000LL)

struct credential {
	char *id, *user;
	enum role role;
	unsigned char hash[MAC_BYTES];
	int64_t expires_at;
	UT_hash_handle hh;
};
struct peer { uid_t uid; char *user; int64_t until; UT_hash_handle hh; };
struct auth {
	struct credential *credentials;      /* by id; only those not revoked */
	struct peer *peers;                  /* by uid */
	unsigned char key[KEY_BYTES];
	char *owner;
	int64_t next_expiry;
};

static const char digits[] = "0123456789abcdef";

static void to_hex(const unsigned char *data, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[data[i] >> 4];
		ret[2 * i + 1] = digits[data[i] & 15];
	}
	ret[2 * n] = 0;
}

static bool from_hex(const char *s, unsigned char *ret, size_t n)
{
	for (size_t i = 0; i < 2 * n; i++) {
		const char *p = s[i] ? strchr(digits, s[i]) : NULL;
		if (!p)
			return false;
		ret[i / 2] = (unsigned char)(i % 2 ? ret[i / 2] | (p - digits) : (p - digits) << 4);
	}
	return !s[2 * n];
}

char *auth_digest(const void *data, size_t n)
{
	unsigned char hash[MAC_BYTES];
	char *hex = mo_alloc(2 * sizeof(hash) + 1);

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, n, hash) != 0)
		abort();
	to_hex(hash, sizeof(hash), hex);
	return hex;
}

/* NULL: no account, or one whose name no record can hold: cut, it would be another user's. */
static char *login_of(uid_t uid)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) != 0 || !found)
		return NULL;
	if (strlen(found->pw_name) <= MO_LONGEST_NAME)
		return mo_strdup(found->pw_name);
	mo_log(MO_WARNING, NULL, NULL, "user %u has a login name of more than %d bytes: it is refused; give the user a token", uid, MO_LONGEST_NAME);
	return NULL;
}

static int load_key(struct manager *m, struct auth *a, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(m->options->state_dir, "session.key");
	_cleanup_(mo_buf_done) struct mo_buf b = {0};

	int r = mo_read_file(path, KEY_BYTES, &b);
	if (r >= 0 && b.len == KEY_BYTES) {
		memcpy(a->key, b.data, KEY_BYTES);
		return 0;
	}
	if (r < 0 && r != -ENOENT)
		return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	r = mo_random(a->key, sizeof(a->key));
	if (r >= 0)
		r = mo_write_file(path, a->key, sizeof(a->key), 0600, true);
	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int auth_new(struct manager *m, struct auth **ret, struct mo_error *err)
{
	struct auth *a = mo_alloc(sizeof(*a));

	a->next_expiry = INT64_MAX;
	a->owner = login_of(geteuid());
	if (!a->owner)
		a->owner = mo_printf("uid%u", geteuid());
	int r = load_key(m, a, err);
	if (r < 0) {
		auth_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

static void clear_credentials(struct auth *a)
{
	struct credential *c, *tmp;

	HASH_ITER(hh, a->credentials, c, tmp) {
		HASH_DEL(a->credentials, c);
		free(c->id);
		free(c->user);
		free(c);
	}
}

struct auth *auth_free(struct auth *a)
{
	struct peer *p, *tmp;

	if (!a)
		return NULL;
	clear_credentials(a);
	HASH_ITER(hh, a->peers, p, tmp) {
		HASH_DEL(a->peers, p);
		free(p->user);
		free(p);
	}
	gnutls_memset(a->key, 0, sizeof(a->key));
	free(a->owner);
	free(a);
	return NULL;
}

void auth_reload(struct manager *m)
{
	const struct state *s = manager_state(m);
	struct auth *a = m->auth;

	clear_credentials(a);
	a->next_expiry = INT64_MAX;
	for (size_t i = 0; i < s->n_tokens; i++) {
		const struct token *t = &s->tokens[i];
		int role = mo_enum_parse(role_names, _ROLE_N, t->role);
		struct credential *c = mo_alloc(sizeof(*c));
		if (t->revoked || role <= ROLE_NONE || !from_hex(t->hash, c->hash, sizeof(c->hash))) {
			free(c);
			continue;
		}
		c->id = mo_strdup(t->id);
		c->user = mo_strdup(t->user);
		c->role = (enum role)role;
		c->expires_at = t->expires_at;
		if (t->expires_at != MO_NONE && t->expires_at > manager_now(m))
			a->next_expiry = MO_MIN(a->next_expiry, t->expires_at);
		HASH_ADD_KEYPTR(hh, a->credentials, c->id, strlen(c->id), c);
	}
}

static const struct credential *find(struct manager *m, const char *id, size_t n)
{
	struct credential *c = NULL;

	HASH_FIND(hh, m->auth->credentials, id, n, c);
	return c && (c->expires_at == MO_NONE || c->expires_at > manager_now(m)) ? c : NULL;
}

bool auth_alive(void *arg, const char *token_id)
{
	struct manager *m = arg;

	return find(m, token_id, strlen(token_id)) != NULL;
}

int64_t auth_next_expiry(const struct manager *m)
{
	return m->auth->next_expiry;
}

static bool session_mac(const struct manager *m, const char *id, int64_t until, unsigned char mac[static MAC_BYTES])
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s %lld", id, (long long)until);

	return gnutls_hmac_fast(GNUTLS_MAC_SHA256, m->auth->key, KEY_BYTES, text, (size_t)n, mac) == 0;
}

char *auth_session(struct manager *m, const char *token_id)
{
	int64_t until = manager_now(m) / 1000000 + SESSION_S;
	unsigned char mac[MAC_BYTES];
	char hex[2 * MAC_BYTES + 1];

	if (!session_mac(m, token_id, until, mac))
		return NULL;
	to_hex(mac, sizeof(mac), hex);
	return mo_printf(SESSION_PREFIX "%s_%lld_%s", token_id, (long long)until, hex);
}

/* "<id>_<expiry>_<mac>" */
static const struct credential *find_session(struct manager *m, const char *text)
{
	char id[ID_CHARS + 1] = "", until_text[24] = "";
	unsigned char want[MAC_BYTES], have[MAC_BYTES];
	int64_t until = 0;

	if (strcspn(text, "_") != ID_CHARS)
		return NULL;
	memcpy(id, text, ID_CHARS);
	text += ID_CHARS + 1;
	size_t n = strcspn(text, "_");
	if (n == 0 || n >= sizeof(until_text) || text[n] != '_')
		return NULL;
	memcpy(until_text, text, n);
	if (mo_parse_i64(until_text, 0, INT64_MAX / 2000000, &until) < 0 || until * 1000000 <= manager_now(m))
		return NULL;
	if (until > manager_now(m) / 1000000 + SESSION_S + 1)   /* made while the clock was ahead */
		return NULL;
	if (!from_hex(text + n + 1, have, sizeof(have)) || !session_mac(m, id, until, want) || gnutls_memcmp(want, have, sizeof(want)) != 0)
		return NULL;
	return find(m, id, ID_CHARS);
}

static const struct credential *find_token(struct manager *m, const char *secret)
{
	unsigned char hash[MAC_BYTES];
	const char *id = secret + strlen(TOKEN_PREFIX);

	if (strcspn(id, "_") != ID_CHARS)
		return NULL;
	const struct credential *c = find(m, id, ID_CHARS);
	if (!c || gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, strlen(secret), hash) != 0 || gnutls_memcmp(hash, c->hash, sizeof(hash)) != 0)
		return NULL;
	return c;
}

bool auth_secret(void *arg, const char *secret, bool by_cookie, struct http_caller *ret)
{
	const char *prefix = by_cookie ? SESSION_PREFIX : TOKEN_PREFIX;
	const struct credential *c = NULL;

	/* A session is no token: as one it could ask for the next session for ever. A token is no session: what a page's cookie holds can be taken back alone. */
	if (mo_starts_with(secret, prefix))
		c = by_cookie ? find_session(arg, secret + strlen(prefix)) : find_token(arg, secret);

	if (!c)
		return false;
	*ret = (struct http_caller){ .role = c->role, .user = c->user, .token_id = c->id };
	return true;
}

void auth_peer(void *arg, uid_t uid, struct http_caller *ret)
{
	struct auth *a = ((struct manager *)arg)->auth;
	int64_t now = mo_clock_boot_us();
	struct peer *p = NULL;

	HASH_FIND(hh, a->peers, &uid, sizeof(uid), p);
	if (!p) {
		p = mo_alloc(sizeof(*p));
		p->uid = uid;
		HASH_ADD(hh, a->peers, uid, sizeof(p->uid), p);
	}
	if (p->until <= now) {
		free(p->user);
		p->user = login_of(uid);
		p->until = now + PEER_CACHE_US;
	}
	bool admin = uid == 0 || uid == geteuid();
	*ret = (struct http_caller){ .role = admin ? ROLE_ADMIN : p->user ? ROLE_USER : ROLE_NONE, .user = p->user ? p->user : admin ? a->owner : NULL };
}

const char *auth_owner(const struct manager *m)
{
	return m->auth->owner;
}

struct token *auth_token_new(struct manager *m, enum role role, const char *user, int64_t lifetime_us, char **ret_secret)
{
	struct token *t = mo_desc_new(&token_desc);
	_cleanup_(mo_freep) char *secret = mo_random_hex(SECRET_BYTES);

	t->id = mo_random_hex(ID_CHARS / 2);
	*ret_secret = mo_printf(TOKEN_PREFIX "%s_%s", t->id, secret);
	t->hash = auth_digest(*ret_secret, strlen(*ret_secret));
	t->role = mo_strdup(role_names[role]);
	t->user = mo_strdup(user);
	t->created_at = manager_now(m);
	t->expires_at = lifetime_us == MO_NONE ? MO_NONE : t->created_at + lifetime_us;
	return t;
}

static bool file_is_valid(struct manager *m, const char *path, enum role role)
{
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	struct http_caller caller;

	if (mo_read_file(path, 256, &b) < 0 || b.len == 0)
		return false;
	b.data[strcspn(b.data, "\r\n")] = 0;
	return auth_secret(m, b.data, false, &caller) && caller.role == role;
}

int auth_bootstrap(struct manager *m, const char *dir, struct mo_error *err)
{
	static const enum role roles[] = { ROLE_ADMIN, ROLE_AGENT };

	int r = mo_mkdir_p(dir, 0700);
	if (r < 0)
		return mo_error_set(err, r, "bootstrap_tokens %s: %s", dir, strerror(-r));
	for (size_t i = 0; i < ELEMENTSOF(roles); i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s.token", role_names[roles[i]]), *secret = NULL;
		if (file_is_valid(m, path, roles[i]))
			continue;
		struct input *in = input_new(EV_TOKEN, NULL);
		in->token = auth_token_new(m, roles[i], roles[i] == ROLE_ADMIN ? m->auth->owner : NULL, MO_NONE, &secret);
		turn_push(m, in);
		_cleanup_(mo_freep) char *line = mo_printf("%s\n", secret);
		r = mo_write_file(path, line, strlen(line), 0600, true);
		if (r < 0)
			return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	}
	return 0;
}
