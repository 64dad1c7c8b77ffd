/* Tokens and the session cookie of the dashboard. A token's text is in the answer of its
 * creation only. */
#include "daemon/api_tokens.h"

#include <string.h>
#include "daemon/api.h"
#include "daemon/auth.h"
#include "daemon/session_cookie.h"
#include "daemon/input.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/wire/encode.h"

#define LIFETIME_MIN_US 1000000
#define LIFETIME_MAX_US (3650LL * 86400 * 1000000)
#define JOIN_LIFETIME_US (3600LL * 1000000)
#define JOIN_LIFETIME_MAX_US (7LL * 86400 * 1000000)

struct token_body {
	char *role, *user, *ttl;
	int64_t nodes;
};
static const struct mo_field token_body_fields[] = {
	MO_D(token_body, role, MO_STR, "viewer, user, operator, admin, agent or join"),
	MO_D(token_body, user, MO_STR,
	     "in whose name; not given: the caller's. Of an agent its node"),
	MO_D(token_body, ttl, MO_STR, "how long it lasts, such as 12h or 30d"),
	MO_D(token_body, nodes, MO_INT, "of a join token: how many nodes it can bring in"),
};
const struct mo_desc token_body_desc = MO_DESC(token_body, token_body_fields);
struct token_view {
	char *id, *token, *role, *user;
	int64_t created_at, expires_at, nodes;
	char **joined;
	size_t n_joined;
	char *from;
};
static const struct mo_field token_view_fields[] = {
	MO_D(token_view, id, MO_STR, "id of the token"),
	MO_D(token_view, token, MO_STR, "its text; only in the answer of its creation",
	     .omit = true),
	MO_D(token_view, role, MO_STR, "what it may do"),
	MO_D(token_view, user, MO_STR, "in whose name; of an agent the node"),
	MO_D(token_view, created_at, MO_TIME, "when it was made"),
	MO_D(token_view, expires_at, MO_TIME, "when it ends"),
	MO_D(token_view, nodes, MO_INT, "of a join token, how many nodes it can bring in",
	     .omit = true),
	MO_D_LIST(token_view, joined, MO_STRS, "of a join token, the nodes that it brought in",
		  .omit = true),
	MO_D(token_view, from, MO_STR, "id of the token that an agent traded for it", .omit = true),
};
const struct mo_desc token_view_desc = MO_DESC(token_view, token_view_fields);

/* Borrows everything. */
static struct token_view view(const struct token *t, char *secret)
{
	return (struct token_view){ t->id,         secret,   t->role,   t->user,     t->created_at,
				    t->expires_at, t->nodes, t->joined, t->n_joined, t->from };
}

/* What cannot be a token; false after 422. */
static bool check(struct http_request *r, const struct token_body *body, bool join,
		  int64_t *ret_lifetime)
{
	int role = body->role ? mo_enum_parse(role_names, _ROLE_N, body->role) : -1;
	int64_t max = join ? JOIN_LIFETIME_MAX_US : LIFETIME_MAX_US;

	*ret_lifetime = join ? JOIN_LIFETIME_US : TOKEN_LIFETIME_US;
	if (role <= ROLE_NONE && !join)
		http_problem(r, 422,
			     "role: %s%.40s%sit must be viewer, user, operator, admin, agent or "
			     "join",
			     body->role ? "'" : "", body->role ? body->role : "",
			     body->role ? "' is none; " : "");
	else if (body->ttl && (mo_parse_duration_us(body->ttl, ret_lifetime) < 0 ||
			       *ret_lifetime < LIFETIME_MIN_US || *ret_lifetime > max))
		http_problem(r, 422, "ttl: %.40s is no duration such as 12h or 30d, of %s at most",
			     body->ttl, join ? "7d" : "3650d");
	else if (body->user && !mo_name_valid(body->user))
		http_problem(r, 422,
			     "user: %.80s is no valid name (letters, digits, . _ - and at most 63)",
			     body->user);
	else if (role == ROLE_AGENT && !body->user)
		http_problem(r, 422,
			     "user: an agent's token is for one node: name it, or make a join "
			     "token (`moectl token join`) with which agents get their own");
	else if (join && body->user)
		http_problem(r, 422,
			     "user: a join token is for any node; make one of role agent for node "
			     "%.63s alone",
			     body->user);
	else if (!join && body->nodes != MO_NONE)
		http_problem(r, 422, "nodes: only a join token has it");
	else if (join && body->nodes != MO_NONE && (body->nodes < 1 || body->nodes > MO_NODES_MAX))
		http_problem(r, 422, "nodes: must be from 1 to %d", MO_NODES_MAX);
	else
		return true;
	return false;
}

static void create(struct manager *m, struct http_request *r, const struct token_body *body)
{
	bool join = mo_streq(body->role, "join");
	int64_t lifetime;

	if (!check(r, body, join, &lifetime))
		return;
	const char *user = body->user ? body->user : join ? NULL : http_caller(r)->user;
	_cleanup_(mo_freep) char *secret = NULL;
	struct input *in = input_new(IN_TOKEN, r);
	in->core.token = auth_token_new(m, body->role, user, lifetime, &secret);
	if (join)
		in->core.token->nodes = body->nodes == MO_NONE ? 1 : body->nodes;
	struct token_view v = view(in->core.token, secret);
	in->answer = ANSWER_TEXT;
	in->answer_text = api_text(&token_view_desc, &v);
	input_push(m, in);
}

void api_tokens_create(void *arg, struct http_request *r)
{
	struct token_body body = { 0 };

	mo_desc_init(&token_body_desc, &body);
	if (api_body(r, &token_body_desc, &body))
		create(arg, r, &body);
	mo_desc_done(&token_body_desc, &body);
}

void api_tokens_list(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct state *s = manager_state(m);
	const char *after = http_query(r, "after");
	_cleanup_(list_done) struct list l = { 0 };
	bool started = !after;

	if (!list_start(r, &l))
		return;
	/* in order of creation: ids are random */
	for (size_t i = 0; i < s->n_tokens; i++) {
		const struct token *t = &s->tokens[i];
		bool skip = !started || t->revoked;
		started |= after && strcmp(t->id, after) == 0;
		if (skip)
			continue;
		if (!list_room(&l))
			break;
		struct token_view v = view(t, NULL);
		list_add(&l, &token_view_desc, &v, t->id);
	}
	list_send(r, &l);
}

struct revoked_view {
	bool revoked;
};
static const struct mo_field revoked_view_fields[] = {
	MO_D(revoked_view, revoked, MO_BOOL, "true"),
};
const struct mo_desc revoked_view_desc = MO_DESC(revoked_view, revoked_view_fields);

void api_tokens_revoke(void *arg, struct http_request *r)
{
	struct input *in = input_new(IN_TOKEN_REVOKE, r);

	in->core.token_id = mo_desc_new(&in_token_id_desc);
	in->core.token_id->id = mo_strdup(http_param(r, "id"));
	in->answer = ANSWER_TEXT;
	in->answer_text = api_text(&revoked_view_desc, &(struct revoked_view){ true });
	input_push(arg, in);
}

/* Borrows. */
struct session_view {
	int role;
	const char *user;
};
static const struct mo_field session_view_fields[] = {
	MO_D_ENUM(session_view, role, role_names, "role of whoever has the cookie"),
	MO_D(session_view, user, MO_STR, "in whose name it acts"),
};
const struct mo_desc session_view_desc = MO_DESC(session_view, session_view_fields);

void api_session_reply(struct manager *m, struct http_request *r, const char *token_id,
		       const char *user, enum role role)
{
	_cleanup_(mo_freep) char *value = auth_session(m, token_id);
	if (!value) {
		http_problem(r, 500, "no session could be made");
		return;
	}
	bool secure = m->options->tls_cert && *m->options->tls_cert;
	_cleanup_(mo_freep) char *cookie = mo_printf("Set-Cookie: moe_session=%s; HttpOnly; "
						     "SameSite=Strict; Path=/; Max-Age=%d%s",
						     value, SESSION_S, secure ? "; Secure" : "");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	wire_encode(&session_view_desc, &(struct session_view){ (int)role, user }, &b);
	http_reply(r, 200, "application/json", b.data, b.len,
		   (const char *const[]){ cookie, NULL });
}

void api_session_create(void *arg, struct http_request *r)
{
	const struct http_caller *c = http_caller(r);

	if (!c->token_id || c->by_cookie)
		http_problem(r, 422,
			     "a session is made from a bearer token: send one in the Authorization "
			     "header");
	else
		api_session_reply(arg, r, c->token_id, c->user, c->role);
}

void api_session_delete(void *arg, struct http_request *r)
{
	http_reply(r, 200, "application/json", "{}", 2,
		   (const char *const[]){
			   "Set-Cookie: moe_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0",
			   NULL });
}

struct whoami_view {
	char *user, *token_id;
	int role;
	bool session;
};
static const struct mo_field whoami_view_fields[] = {
	MO_D(whoami_view, user, MO_STR, "whose jobs it submits; null: a token without one"),
	MO_D_ENUM(whoami_view, role, role_names, "what it may do"),
	MO_D(whoami_view, token_id, MO_STR,
	     "id of its token; null over the UNIX socket, where the kernel says who it is"),
	MO_D(whoami_view, session, MO_BOOL, "a browser's session made of that token"),
};
const struct mo_desc whoami_view_desc = MO_DESC(whoami_view, whoami_view_fields);

void api_whoami(void *arg, struct http_request *r)
{
	const struct http_caller *c = http_caller(r);
	const struct whoami_view v = { .user = (char *)c->user,
				       .token_id = (char *)c->token_id,
				       .role = c->role,
				       .session = c->by_cookie };

	api_send_doc(r, 200, &whoami_view_desc, &v);
}
