/* Tokens: made and revoked by admins, traded by agents. A node's token is its own: an agent
 * trades what it was given (a join token, or a local cluster's token of no node) for one that is
 * bound to its node, and that one for a new one at half of its life.
 *   join token J (--nodes N) --trade--> T1 (from J) --first use--> used --trade at half--> T2
 *   (from T1) --first use of T2--> T1 is gone
 * An answer that is lost costs nothing: what a node traded and never used goes when it trades
 * again, and what it traded before, also what it lost with its disk, stays until it speaks with
 * the new one. So a node has two of them at most, and a copy of an old token is worth nothing once
 * its node has renewed. A person who revokes a node's token puts its name out: all of its tokens
 * go, and what was made before brings it back by no trade; a join token, or a token of that node,
 * made after that does. An agent's token that has expired still speaks for its node: beats,
 * adoption and stops go on, but the node gets no launch (node_unfit, commands.c). */
#include "daemon/core/rules/tokens.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/token.h"
#include "daemon/core/update/wake.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

/* an expired token of a person is listed for so long */
#define EXPIRED_RETAINED_US (30LL * 86400 * 1000000)
/* of one node: it renews a token of 30 days at half of them */
#define TRADE_EVERY_US (600LL * 1000000)
#define LOST_BURST 5                   /* answers that may be lost; then one may be */
#define LOST_EVERY_US (60LL * 1000000) /* in this time */

static bool expired(const struct token *k, int64_t now)
{
	return k->expires_at != MO_NONE && k->expires_at <= now;
}

static const struct token *some_of(const struct state *s, const char *node)
{
	for (size_t i = s->n_tokens; i > 0; i--)
		if (token_bound_to(&s->tokens[i - 1], node))
			return &s->tokens[i - 1];
	return NULL;
}

/* What the node traded last, as far as it was not revoked. */
static const struct token *last_traded(const struct state *s, const char *node)
{
	for (size_t i = s->n_tokens; i > 0; i--)
		if (token_bound_to(&s->tokens[i - 1], node) && s->tokens[i - 1].from)
			return &s->tokens[i - 1];
	return NULL;
}

static void revoke(struct turn *t, const char *id, bool put_out)
{
	struct record r;

	record_init(&r, REC_TOKEN_REVOKED);
	r.token_revoked->id = mo_strdup(id);
	r.token_revoked->put_out = put_out;
	turn_emit(t, &r);
}

/* Nobody misses them; an agent's may still speak for its node. */
static void forget_expired(struct turn *t)
{
	const struct state *s = &t->core->state;

	/* one that goes may take others with it */
	for (size_t i = s->n_tokens; i > 0; i = MO_MIN(i - 1, s->n_tokens)) {
		const struct token *k = &s->tokens[i - 1];

		if (!mo_streq(k->role, "agent") && k->expires_at != MO_NONE &&
		    k->expires_at < t->now - EXPIRED_RETAINED_US)
			revoke(t, k->id, false);
	}
}

/* The token that keeps this name: its node has spoken with it, or a person made it for that
 * node, and it is not over. */
static const struct token *token_in_use(const struct state *s, const char *node, int64_t now)
{
	for (size_t i = s->n_tokens; i > 0; i--)
		if (token_bound_to(&s->tokens[i - 1], node) &&
		    (s->tokens[i - 1].used || !s->tokens[i - 1].from) &&
		    !expired(&s->tokens[i - 1], now))
			return &s->tokens[i - 1];
	return NULL;
}

/* A trade is a record and an event. One whose token was used comes when half of its life is
 * over; one that was not, whenever an answer was lost. */
static bool trades_too_often(struct turn *t, const char *node)
{
	const struct token *last = last_traded(&t->core->state, node);
	int64_t since = last ? t->now - last->created_at : INT64_MAX;

	if (!last || since >= (last->used ? TRADE_EVERY_US : LOST_EVERY_US))
		return false;
	if (!last->used && (last->tries == MO_NONE || last->tries < LOST_BURST))
		return false;
	turn_reply(t, 429, MO_NONE,
		   "node %s: it got token %s just now: one may be traded every %lld s", node,
		   last->id, (last->used ? TRADE_EVERY_US : LOST_EVERY_US) / 1000000);
	return true;
}

/* By a person, after the token that it would be traded for was made. */
static bool is_out(const struct state *s, const struct token *from, const char *node)
{
	const struct token *out = token_put_out(s, node);

	return out && (token_is_unbound(from) ||
		       (token_is_join(from) && from->created_at <= out->revoked_at));
}

static bool trade_refused(struct turn *t, const struct token *k)
{
	const struct token *from = token_find(&t->core->state, k->from);
	const struct token *other =
		from && token_is_join(from) ? token_in_use(&t->core->state, k->user, t->now) : NULL;

	if (!from)
		turn_reply(t, 403, MO_NONE,
			   "token %s: it was revoked just now; make another with 'moectl token "
			   "join'",
			   k->from);
	else if (other)
		turn_reply(t, 409, MO_NONE,
			   "node %s: it has a token already (%s, until it is revoked or expires); "
			   "if this is the same machine installed anew: 'moectl token revoke %s' "
			   "and then a new join token ('moectl token join'), else give it another "
			   "name (node: in agent.yaml)",
			   k->user, other->id, other->id);
	else if (is_out(&t->core->state, from, k->user))
		turn_reply(t, 403, MO_NONE,
			   "node %s: its token was revoked%s%s%s: make a new one ('moectl token "
			   "join') and put it into its token_file",
			   k->user, token_is_join(from) ? " after join token " : "",
			   token_is_join(from) ? from->id : "",
			   token_is_join(from) ? " was made"
					       : ", and a token of no node does not bring it back");
	else if (token_is_join(from) && !token_joined(from, k->user) &&
		 (int64_t)from->n_joined >= from->nodes)
		turn_reply(t, 403, MO_NONE,
			   "join token %s: it was for %lld node%s, and as many have joined with "
			   "it; make another with 'moectl token join'",
			   from->id, (long long)from->nodes, from->nodes == 1 ? "" : "s");
	else if (!token_is_join(from) && from->user && !mo_streq(from->user, k->user))
		turn_reply(t, 403, MO_NONE, "token %s: it is for node %s, not for %s", from->id,
			   from->user, k->user);
	else
		return trades_too_often(t, k->user);
	return true;
}

static void tell_made(struct turn *t, const struct token *k)
{
	const struct token *from = token_find(&t->core->state, k->from),
			   *last = k->from ? last_traded(&t->core->state, k->user) : NULL;
	char until[32];

	if (!k->from)
		audit_emit(t, EVENT_AUDIT_TOKEN_CREATED, NULL,
			   "made token %s, role %s%s%s, until %s", k->id, k->role,
			   k->user ? " for " : "", k->user ? k->user : "",
			   k->expires_at == MO_NONE ? "it is revoked"
						    : mo_time_format(k->expires_at, until));
	else if (last && !last->used && mo_streq(last->from, k->from))
		return; /* the answer was lost: nothing new */
	else if (from && token_is_join(from))
		event_emit(t, EVENT_AUDIT_TOKEN_JOINED, MO_NONE, k->user, MO_NONE, MO_NONE, NULL,
			   "node %s joined with token %s: its own is %s", k->user, from->id, k->id);
	else
		event_emit(t, EVENT_NODE_TOKEN_RENEWED, MO_NONE, k->user, MO_NONE, MO_NONE, NULL,
			   "node %s has a new token, %s in place of %s", k->user, k->id, k->from);
}

/* Also one that was revoked and is retained. */
static bool id_taken(const struct state *s, const char *id)
{
	for (size_t i = 0; i < s->n_tokens; i++)
		if (mo_streq(s->tokens[i].id, id))
			return true;
	return false;
}

static void create(struct turn *t)
{
	const struct token *k = t->input->token, *last;
	struct record r;

	if (id_taken(&t->core->state, k->id)) {
		turn_reply(t, 503, MO_NONE,
			   "token %s: there is one of this number, which was drawn by chance: ask "
			   "again",
			   k->id);
		return;
	}
	if (k->from && trade_refused(t, k))
		return;
	forget_expired(t); /* which moves those behind */
	tell_made(t, k);
	last = k->from ? last_traded(&t->core->state, k->user) : NULL;
	record_init(&r, REC_TOKEN);
	r.token = mo_desc_dup(&token_desc, k);
	if (last && !last->used)
		r.token->tries = MO_MIN(MO_MAX(last->tries, 0) + 1, LOST_BURST);
	turn_emit(t, &r);
	turn_reply(t, 201, MO_NONE, NULL);
}

/* All tokens of the node, or others of them would bring it back. */
static void put_out(struct turn *t, const struct token *k)
{
	_cleanup_(mo_freep) char *node = mo_strdup(k->user);
	struct mo_buf others = { 0 };

	for (size_t i = 0; i < t->core->state.n_tokens; i++)
		if (token_bound_to(&t->core->state.tokens[i], node) &&
		    !mo_streq(t->core->state.tokens[i].id, k->id))
			mo_buf_printf(&others, "%s%s", others.len ? ", " : " and ",
				      t->core->state.tokens[i].id);
	audit_emit(t, EVENT_AUDIT_TOKEN_REVOKED, NULL,
		   "revoked token %s, role %s for %s%.200s%s: the node is out until a token is "
		   "made for it, or to join with",
		   k->id, k->role, node, others.len ? others.data : "",
		   others.len ? ", its other" : "");
	mo_buf_done(&others);
	while ((k = some_of(&t->core->state, node)))
		revoke(t, k->id, true);
}

/* For the first time: what its node traded before goes. */
static void used(struct turn *t, const struct token *k)
{
	const struct state *s = &t->core->state;
	_cleanup_(mo_freep) char *node = mo_strdup(k->user);
	size_t older = (size_t)(k - s->tokens);
	struct record r;

	/* one that goes may take others with it */
	for (size_t i = older; node && i > 0; i = MO_MIN(i - 1, s->n_tokens))
		if (s->tokens[i - 1].from && token_bound_to(&s->tokens[i - 1], node))
			revoke(t, s->tokens[i - 1].id, false);
	record_init(&r, REC_TOKEN_USED);
	r.token_used->id = mo_strdup(t->input->token_id->id);
	turn_emit(t, &r);
}

void token_verb(struct turn *t)
{
	const struct core_input *e = t->input;
	const char *id = e->type == IN_TOKEN ? NULL : e->token_id->id;
	const struct token *k = id ? token_find(&t->core->state, id) : NULL;

	if (e->type == IN_TOKEN) {
		create(t);
	} else if (e->type == IN_TOKEN_USED && k && !k->used) {
		used(t, k);
	} else if (e->type == IN_TOKEN_REVOKE && k && k->user && mo_streq(k->role, "agent")) {
		put_out(t, k);
		turn_reply(t, 200, MO_NONE, NULL);
	} else if (e->type == IN_TOKEN_REVOKE && k) {
		audit_emit(t, EVENT_AUDIT_TOKEN_REVOKED, NULL, "revoked token %s, role %s%s%s",
			   k->id, k->role, k->user ? " for " : "", k->user ? k->user : "");
		revoke(t, id, false);
		turn_reply(t, 200, MO_NONE, NULL);
	} else if (e->type == IN_TOKEN_REVOKE) {
		turn_reply(t, 404, MO_NONE,
			   "token %s: no such token; list them with 'moectl token list'", id);
	}
}

void token_reported(struct turn *t, const char *name, bool is_expired)
{
	const struct node *n = node_find(&t->core->state, name);
	struct record r;

	if (!n || n->agent.token_expired == is_expired)
		return;
	record_init(&r, REC_NODE_TOKEN);
	r.node = mo_strdup(name);
	r.node_token->expired = is_expired;
	turn_emit(t, &r);
	if (is_expired)
		event_emit(t, EVENT_NODE_TOKEN_EXPIRED, MO_NONE, name, MO_NONE, MO_NONE, NULL,
			   "node %s: its token has expired: what runs there goes on, new work goes "
			   "elsewhere; make a join token ('moectl token join') and put it into its "
			   "token_file",
			   name);
	else
		event_emit(t, EVENT_NODE_TOKEN_GOOD, MO_NONE, name, MO_NONE, MO_NONE, NULL,
			   "node %s: it has a token that is good again", name);
	wake_node(t->core, name);
}
