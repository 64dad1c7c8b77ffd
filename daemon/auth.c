/* Tokens are "moe_<id>_<64 hex digits>", join tokens "moej_..."; the state keeps SHA-256 of the
 * whole text. Look-up by id, compare in constant time. An agent's token that has expired is
 * still known: agent_tokens.c says what it is good for. Cookies of sessions are session_cookie.c's,
 * callers by the UNIX socket peers.c's. */
#include "daemon/auth.h"
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <uthash.h>
#include "daemon/input.h"
#include "daemon/peers.h"
#include "daemon/session_cookie.h"
#include "lib/base/fd.h"
#include "lib/base/hex.h"
#include "lib/base/secret.h"

#define TOKEN_PREFIX "moe_"
#define JOIN_PREFIX "moej_"
#define SECRET_BYTES 32
#define MAC_BYTES 32
#define BOOTSTRAP_RETRY_US (3600 * 1000000LL)

struct credential {
	char *id, *user;
	enum role role;
	unsigned char hash[MAC_BYTES];
	int64_t created_at, expires_at;
	bool join, used, traded;
	uint64_t generation; /* when it was met last */
	UT_hash_handle hh;
};
struct auth {
	struct credential *credentials; /* by id; only those not revoked */
	struct peers *peers;
	unsigned char key[SESSION_KEY_BYTES];
	int64_t next_expiry;
	uint64_t generation;
	int64_t bootstrap_due; /* core time; INT64_MAX none */
	char *made[_ROLE_N];   /* secrets for files of the bootstrap, until they are written */
};

char *auth_digest(const void *data, size_t n)
{
	unsigned char hash[MAC_BYTES];
	char *hex = mo_alloc(2 * sizeof(hash) + 1);

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, n, hash) != 0)
		abort();
	mo_hex(hash, sizeof(hash), hex);
	return hex;
}

int auth_new(struct manager *m, struct auth **ret, struct mo_error *err)
{
	struct auth *a = mo_alloc(sizeof(*a));

	a->next_expiry = a->bootstrap_due = INT64_MAX;
	a->peers = peers_new();
	int r = session_key_load(m->options->state_dir, a->key, err);
	if (r < 0) {
		auth_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

static void credential_free(struct auth *a, struct credential *c)
{
	HASH_DEL(a->credentials, c);
	free(c->id);
	free(c->user);
	free(c);
}

/* Those that were not met when the state was read last. */
static void clear_credentials(struct auth *a, uint64_t generation)
{
	struct credential *c, *tmp;

	HASH_ITER(hh, a->credentials, c, tmp)
		if (c->generation != generation)
			credential_free(a, c);
}

struct auth *auth_free(struct auth *a)
{
	if (!a)
		return NULL;
	clear_credentials(a, UINT64_MAX);
	peers_free(a->peers);
	for (size_t i = 0; i < ELEMENTSOF(a->made); i++)
		free(a->made[i]);
	gnutls_memset(a->key, 0, sizeof(a->key));
	free(a);
	return NULL;
}

/* A token that is known already: nothing but these two changes, except its times with the clock
 * (core/clock.c). */
static bool known(struct auth *a, const struct token *t)
{
	struct credential *c = NULL;

	HASH_FIND_STR(a->credentials, t->id, c);
	if (!c || t->revoked)
		return false;
	c->used = t->used;
	c->created_at = t->created_at;
	c->expires_at = t->expires_at;
	c->generation = a->generation;
	return true;
}

static void add_credential(struct auth *a, const struct token *t)
{
	bool join = mo_streq(t->role, "join");
	int role = join ? ROLE_AGENT : mo_enum_parse(role_names, _ROLE_N, t->role);
	struct credential *c = mo_alloc(sizeof(*c));

	if (t->revoked || role <= ROLE_NONE || !mo_unhex(t->hash, c->hash, sizeof(c->hash))) {
		free(c);
		return;
	}
	c->id = mo_strdup(t->id);
	c->user = mo_strdup(t->user);
	c->role = (enum role)role;
	c->created_at = t->created_at;
	c->expires_at = t->expires_at;
	c->join = join;
	c->used = t->used;
	c->traded = t->from != NULL;
	c->generation = a->generation;
	HASH_ADD_KEYPTR(hh, a->credentials, c->id, strlen(c->id), c);
}

/* After each turn that changed a token, of which there are as many as nodes, and all of those
 * may join at once: what did not change costs a stat. */
void auth_reload(struct manager *m)
{
	const struct state *s = manager_state(m);
	struct auth *a = m->auth;
	int64_t now = manager_now(m);

	a->generation++;
	a->next_expiry = INT64_MAX;
	for (size_t i = 0; i < s->n_tokens; i++) {
		const struct token *t = &s->tokens[i];
		if (!known(a, t))
			add_credential(a, t);
		if (!t->revoked && t->expires_at != MO_NONE && t->expires_at > now)
			a->next_expiry = MO_MIN(a->next_expiry, t->expires_at);
	}
	clear_credentials(a, a->generation);
}

static bool expired(struct manager *m, const struct credential *c)
{
	return c->expires_at != MO_NONE && c->expires_at <= manager_now(m);
}

static const struct credential *find(struct manager *m, const char *id, size_t n)
{
	struct credential *c = NULL;

	HASH_FIND(hh, m->auth->credentials, id, n, c);
	return c && (!expired(m, c) || (c->role == ROLE_AGENT && !c->join)) ? c : NULL;
}

static int64_t half_life(int64_t created_at, int64_t expires_at)
{
	return expires_at == MO_NONE ? INT64_MAX : created_at + (expires_at - created_at) / 2;
}

bool auth_agent(struct manager *m, const char *token_id, struct agent_token *ret)
{
	const struct credential *c = token_id ? find(m, token_id, strlen(token_id)) : NULL;

	if (!c || c->role != ROLE_AGENT)
		return false;
	*ret = (struct agent_token){ .id = c->id,
				     .node = c->user,
				     .join = c->join,
				     .used = c->used,
				     .traded = c->traded,
				     .expired = expired(m, c),
				     .due = manager_now(m) >=
					    half_life(c->created_at, c->expires_at) };
	return true;
}

void auth_agent_used(struct manager *m, const char *token_id)
{
	struct credential *c = NULL;

	HASH_FIND_STR(m->auth->credentials, token_id, c);
	if (c)
		c->used = true;
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

static const struct credential *find_session(struct manager *m, const char *text)
{
	char id[TOKEN_ID_CHARS + 1];

	return session_read(m->auth->key, text, manager_now(m), id) ? find(m, id, TOKEN_ID_CHARS)
								    : NULL;
}

static const struct credential *find_token(struct manager *m, const char *secret,
					   const char *prefix)
{
	unsigned char hash[MAC_BYTES];
	const char *id = secret + strlen(prefix);

	if (strcspn(id, "_") != TOKEN_ID_CHARS)
		return NULL;
	const struct credential *c = find(m, id, TOKEN_ID_CHARS);
	if (!c || gnutls_hash_fast(GNUTLS_DIG_SHA256, secret, strlen(secret), hash) != 0 ||
	    gnutls_memcmp(hash, c->hash, sizeof(hash)) != 0)
		return NULL;
	return c;
}

bool auth_secret(void *arg, const char *secret, bool by_cookie, struct http_caller *ret)
{
	struct manager *m = arg;
	const struct credential *c = NULL;

	/* A session is no token: as one it could ask for the next session for ever. A token is
	 * no session: what a page's cookie holds can be taken back alone. */
	if (by_cookie)
		c = mo_starts_with(secret, SESSION_PREFIX)
			    ? find_session(m, secret + strlen(SESSION_PREFIX))
			    : NULL;
	else if (mo_starts_with(secret, TOKEN_PREFIX))
		c = find_token(m, secret, TOKEN_PREFIX);
	else if (mo_starts_with(secret, JOIN_PREFIX))
		c = find_token(m, secret, JOIN_PREFIX);

	if (!c)
		return false;
	*ret = (struct http_caller){ .role = c->role, .user = c->user, .token_id = c->id };
	return true;
}

void auth_peer(void *arg, uid_t uid, struct http_caller *ret)
{
	peers_caller(((struct manager *)arg)->auth->peers, uid, ret);
}

int auth_account(const struct manager *m, const struct http_caller *c, struct mo_error *err)
{
	return peers_account(m->auth->peers, manager_state(m), c, err);
}

char *auth_session(struct manager *m, const char *token_id)
{
	return session_make(m->auth->key, token_id, manager_now(m));
}

struct token *auth_token_new(struct manager *m, const char *role, const char *user,
			     int64_t lifetime_us, char **ret_secret)
{
	struct token *t = mo_desc_new(&token_desc);
	_cleanup_(mo_freep) char *secret = mo_random_hex(SECRET_BYTES);
	struct credential *taken = NULL;

	/* The core refuses one of the same turn, or that is kept as revoked. */
	do {
		free(t->id);
		t->id = mo_random_hex(TOKEN_ID_CHARS / 2);
		HASH_FIND_STR(m->auth->credentials, t->id, taken);
	} while (taken);
	*ret_secret = mo_printf("%s%s_%s", strcmp(role, "join") == 0 ? JOIN_PREFIX : TOKEN_PREFIX,
				t->id, secret);
	t->hash = auth_digest(*ret_secret, strlen(*ret_secret));
	t->role = mo_strdup(role);
	t->user = mo_strdup(user);
	t->created_at = manager_now(m);
	t->expires_at = t->created_at + lifetime_us;
	return t;
}

/* When a token of the bootstrap is to be made anew: at half of its life. 0: it is none. One of an
 * earlier version, without an end, stays. */
static int64_t secret_due(struct manager *m, const char *secret, enum role role)
{
	struct http_caller caller;
	struct credential *c = NULL;

	if (!auth_secret(m, secret, false, &caller) || caller.role != role)
		return 0;
	HASH_FIND_STR(m->auth->credentials, caller.token_id, c);
	return c ? half_life(c->created_at, c->expires_at) : 0;
}

static int64_t file_due(struct manager *m, const char *path, enum role role)
{
	_cleanup_(mo_freep) char *secret = NULL;

	return mo_token_read(path, &secret, NULL) < 0 ? 0 : secret_due(m, secret, role);
}

static void make_token(struct manager *m, enum role role, char **ret_secret)
{
	const char *user = role == ROLE_ADMIN ? peers_owner(m->auth->peers) : NULL;
	struct input *in = input_new(IN_TOKEN, NULL);

	in->core.token = auth_token_new(m, role_names[role], user, TOKEN_LIFETIME_US, ret_secret);
	input_push(m, in);
}

/* What was made is written once it is stored: what the file holds is accepted at every moment. */
static int bootstrap_file(struct manager *m, const char *dir, enum role role, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s.token", role_names[role]);
	char **made = &m->auth->made[role];
	int64_t due = *made ? secret_due(m, *made, role) : 0;

	if (due) {
		_cleanup_(mo_freep) char *line = mo_printf("%s\n", *made);
		int r = mo_write_file(path, line, strlen(line), 0600, true);
		if (r < 0)
			return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	} else {
		due = file_due(m, path, role);
	}
	free(TAKE_PTR(*made));
	if (due <= manager_now(m))
		make_token(m, role, made);
	m->auth->bootstrap_due = MO_MIN(m->auth->bootstrap_due, due);
	return 0;
}

int auth_bootstrap(struct manager *m, const char *dir, struct mo_error *err)
{
	int r = mo_mkdir_p(dir, 0700, false);

	if (r < 0)
		return mo_error_set(err, r, "bootstrap_tokens %s: %s", dir, strerror(-r));
	m->auth->bootstrap_due = INT64_MAX;
	r = bootstrap_file(m, dir, ROLE_ADMIN, err);
	return r < 0 ? r : bootstrap_file(m, dir, ROLE_AGENT, err);
}

void auth_bootstrap_renew(struct manager *m)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (manager_now(m) < m->auth->bootstrap_due)
		return;
	int r = auth_bootstrap(m, m->options->bootstrap_tokens, &err);
	if (r < 0) {
		mo_log(MO_ERR, NULL, NULL, "%s; trying again in an hour", mo_error_text(&err, r));
		m->auth->bootstrap_due = manager_now(m) + BOOTSTRAP_RETRY_US;
	}
}
