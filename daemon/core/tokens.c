/* Tokens: made and revoked by admins, traded by agents. A node's token is its own: an agent trades what it was given (a join token, or a local cluster's token of no node) for one that
 * is bound to its node, and that one for a new one at half of its life.
 *   join token J (--nodes N) --trade--> T1 (from J) --first use--> used --trade at half--> T2 (from T1) --first use of T2--> T1 is gone
 * An answer that is lost costs nothing: what a node traded and never used goes when it trades again, and what it traded from stays until it speaks with the new one. So a node has two
 * of them at most, and a copy of an old token is worth nothing once its node has renewed.
 * An agent's token that has expired still speaks for its node: beats, adoption and stops go on, but the node gets no launch (node_unfit, commands.c). */
#include "daemon/core/inner.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"

#define EXPIRED_KEPT_US (30LL * 86400 * 1000000)   /* an expired token of a person is listed for so long */

static struct token *find(const struct state *s, const char *id)
{
	for (size_t i = 0; id && i < s->n_tokens; i++)
		if (!s->tokens[i].revoked && mo_streq(s->tokens[i].id, id))
			return &s->tokens[i];
	return NULL;
}

static bool expired(const struct token *k, int64_t now) { return k->expires_at != MO_NONE && k->expires_at <= now; }
static bool is_join(const struct token *k) { return mo_streq(k->role, "join"); }
static bool bound_to(const struct token *k, const char *node) { return !k->revoked && mo_streq(k->role, "agent") && k->user && mo_streq(k->user, node); }
static bool joined(const struct token *k, const char *node) { return mo_enum_parse((const char *const *)k->joined, k->n_joined, node) >= 0; }

/* ---- records ---- */

static void drop(struct state *s, const struct token *k)
{
	mo_vec_remove(&token_desc, s->tokens, &s->n_tokens, (size_t)(k - s->tokens));
}

int update_token(struct core *c, const struct record *r)
{
	struct state *s = &c->state;
	struct token *from;

	if (!r->token || !r->token->id)
		return -EINVAL;
	for (size_t i = s->n_tokens; r->token->from && r->token->user && i > 0; i--) {
		const struct token *k = &s->tokens[i - 1];

		if (bound_to(k, r->token->user) && k->from && !k->used && !mo_streq(k->id, r->token->from))
			drop(s, k);
	}
	from = find(s, r->token->from);
	if (from && is_join(from) && r->token->user && !joined(from, r->token->user))
		mo_strs_add(&from->joined, &from->n_joined, r->token->user);
	mo_desc_copy(&token_desc, MO_ADD(s, tokens, &token_desc), r->token);
	return 0;
}

/* Also one that is not there: a record of an earlier version. */
int update_token_revoked(struct core *c, const struct record *r)
{
	const struct token *k = find(&c->state, r->text);

	if (k)
		drop(&c->state, k);
	return 0;
}

int update_token_used(struct core *c, const struct record *r)
{
	struct token *k = find(&c->state, r->text), *from = k ? find(&c->state, k->from) : NULL;

	if (!k)
		return -EINVAL;
	k->used = true;
	if (from && k->user && bound_to(from, k->user))
		drop(&c->state, from);
	return 0;
}

int update_node_token(struct core *c, const struct record *r)
{
	struct node *n = node_find(&c->state, r->node);

	if (!n)
		return -EINVAL;
	n->token_expired = r->flag;
	c->queue_dirty = true;
	return 0;
}

/* ---- rules ---- */

static void revoke(struct turn *t, const char *id)
{
	struct record r;

	record_init(&r, REC_TOKEN_REVOKED);
	r.text = mo_strdup(id);
	turn_emit(t, &r);
}

/* Nobody misses them; an agent's may still speak for its node. */
static void forget_expired(struct turn *t)
{
	const struct state *s = &t->core->state;

	for (size_t i = s->n_tokens; i > 0; i--) {
		const struct token *k = &s->tokens[i - 1];

		if (!mo_streq(k->role, "agent") && k->expires_at != MO_NONE && k->expires_at < t->now - EXPIRED_KEPT_US)
			revoke(t, k->id);
	}
}

/* The token with which this node spoke last, as far as that is not over. */
static const struct token *token_in_use(const struct state *s, const char *node, int64_t now)
{
	for (size_t i = s->n_tokens; i > 0; i--)
		if (bound_to(&s->tokens[i - 1], node) && s->tokens[i - 1].used && !expired(&s->tokens[i - 1], now))
			return &s->tokens[i - 1];
	return NULL;
}

static bool trade_refused(struct turn *t, const struct token *k)
{
	const struct token *from = find(&t->core->state, k->from);
	const struct token *other = from && is_join(from) ? token_in_use(&t->core->state, k->user, t->now) : NULL;

	if (!from)
		turn_reply(t, 403, MO_NONE, "token %s: it was revoked just now; make another with 'moectl token join'", k->from);
	else if (other)
		turn_reply(t, 409, MO_NONE, "node %s: it has a token already (%s, in use until it is revoked or expires); if this is the same machine installed anew: 'moectl token revoke %s', else give it another name (node: in agent.yaml)",
			k->user, other->id, other->id);
	else if (is_join(from) && !joined(from, k->user) && (int64_t)from->n_joined >= from->nodes)
		turn_reply(t, 403, MO_NONE, "join token %s: it was for %lld node%s, and as many have joined with it; make another with 'moectl token join'", from->id, (long long)from->nodes, from->nodes == 1 ? "" : "s");
	else if (!is_join(from) && from->user && !mo_streq(from->user, k->user))
		turn_reply(t, 403, MO_NONE, "token %s: it is for node %s, not for %s", from->id, from->user, k->user);
	else
		return false;
	return true;
}

static void tell_made(struct turn *t, const struct token *k)
{
	const struct token *from = find(&t->core->state, k->from);
	char until[32];

	if (!k->from)
		audit_emit(t, "audit.token_created", NULL, "made token %s, role %s%s%s, until %s", k->id, k->role, k->user ? " for " : "", k->user ? k->user : "",
			k->expires_at == MO_NONE ? "it is revoked" : mo_time_format(k->expires_at, until));
	else if (from && is_join(from))
		event_emit(t, "audit.token_joined", MO_NONE, k->user, MO_NONE, MO_NONE, NULL, "node %s joined with token %s: its own is %s", k->user, from->id, k->id);
	else
		event_emit(t, "node.token_renewed", MO_NONE, k->user, MO_NONE, MO_NONE, NULL, "node %s has a new token, %s in place of %s", k->user, k->id, k->from);
}

static void create(struct turn *t)
{
	const struct token *k = t->event->token;
	struct record r;

	if (k->from && trade_refused(t, k))
		return;
	forget_expired(t);
	tell_made(t, k);
	record_init(&r, REC_TOKEN);
	r.token = mo_desc_dup(&token_desc, k);
	turn_emit(t, &r);
	turn_reply(t, 201, MO_NONE, NULL);
}

void token_verb(struct turn *t)
{
	const struct core_event *e = t->event;
	const struct token *k = e->type == EV_TOKEN ? NULL : find(&t->core->state, e->text);
	struct record r;

	if (e->type == EV_TOKEN) {
		create(t);
	} else if (e->type == EV_TOKEN_USED && k && !k->used) {
		record_init(&r, REC_TOKEN_USED);
		r.text = mo_strdup(e->text);
		turn_emit(t, &r);
	} else if (e->type == EV_TOKEN_REVOKE && k) {
		audit_emit(t, "audit.token_revoked", NULL, "revoked token %s, role %s%s%s", k->id, k->role, k->user ? " for " : "", k->user ? k->user : "");
		revoke(t, e->text);
		turn_reply(t, 200, MO_NONE, NULL);
	} else if (e->type == EV_TOKEN_REVOKE) {
		turn_reply(t, 404, MO_NONE, "token %s: no such token; list them with 'moectl token list'", e->text);
	}
}

void token_told(struct turn *t, const char *name, bool is_expired)
{
	const struct node *n = node_find(&t->core->state, name);
	struct record r;

	if (!n || n->token_expired == is_expired)
		return;
	record_init(&r, REC_NODE_TOKEN);
	r.node = mo_strdup(name);
	r.flag = is_expired;
	turn_emit(t, &r);
	if (is_expired)
		event_emit(t, "node.token_expired", MO_NONE, name, MO_NONE, MO_NONE, NULL,
			"node %s: its token has expired: what runs there goes on, new work goes elsewhere; make a join token ('moectl token join') and put it into its token_file", name);
	else
		event_emit(t, "node.token_good", MO_NONE, name, MO_NONE, MO_NONE, NULL, "node %s: it has a token that is good again", name);
	wake_node(t->core, name);
}
