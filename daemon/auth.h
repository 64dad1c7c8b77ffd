/* Who is calling: bearer tokens, sessions of the dashboard, peers of the UNIX socket. */
#pragma once
#include "daemon/manager.h"

struct auth;
int auth_new(struct manager *m, struct auth **ret, struct mo_error *err);
struct auth *auth_free(struct auth *a);
/* Reads the tokens of the state anew; after each turn that changed them. */
void auth_reload(struct manager *m);
/* Callbacks of the server; arg = manager. */
bool auth_secret(void *arg, const char *secret, bool by_cookie, struct http_caller *ret);
void auth_peer(void *arg, uid_t uid, struct http_caller *ret);
/* A caller by the socket whose account no node would run ranks of, where all nodes said which
 * those are (min_uid): -EPERM with the words that the nodes would find. 0: he may, or only the
 * nodes know. */
int auth_account(const struct manager *m, const struct http_caller *c, struct mo_error *err);
/* false once a token is revoked or has expired. */
bool auth_alive(void *arg, const char *token_id);
/* Core time of the next expiry of any token; INT64_MAX none. */
int64_t auth_next_expiry(const struct manager *m);
/* A new token with its id, hash and times filled; *ret_secret is shown once (caller frees).
 * role: of role_names, or join. */
#define TOKEN_LIFETIME_US (30LL * 86400 * 1000000)
struct token *auth_token_new(struct manager *m, const char *role, const char *user,
			     int64_t lifetime_us, char **ret_secret);
/* An agent's token, also an expired one. false: it is none. Borrows until the next turn. */
struct agent_token {
	const char *id, *node;   /* node NULL: of no node */
	bool join, used, traded; /* as in struct token */
	bool due, expired;       /* due: half of its life is over */
};
bool auth_agent(struct manager *m, const char *token_id, struct agent_token *ret);
/* its first word was heard: IN_TOKEN_USED is on its way */
void auth_agent_used(struct manager *m, const char *token_id);
/* Cookie value for a token, good for SESSION_S seconds (session_cookie.h) and as long as the token.
 * Caller frees. */
char *auth_session(struct manager *m, const char *token_id);
/* Makes sure that DIR/admin.token and DIR/agent.token hold valid tokens: pushes IN_TOKEN for new
 * ones, and writes those that are stored by now. */
int auth_bootstrap(struct manager *m, const char *dir, struct mo_error *err);
/* Makes them anew at half of their life; called now and then. */
void auth_bootstrap_renew(struct manager *m);
/* SHA-256 in hex; caller frees. */
char *auth_digest(const void *data, size_t n);
