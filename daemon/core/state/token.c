/* See token.h. */
#include "daemon/core/state/token.h"

#include "daemon/core/state/state.h"
#include "lib/base/assert.h"

static const struct mo_field token_fields[] = {
	MO_D(token, id, MO_STR, "by which people name it"),
	MO_D(token, hash, MO_STR, "SHA-256 of the secret, hex"),
	MO_D(token, role, MO_STR,
	     "what its owner may do; agent: speaks for a node; join: good for agent tokens"),
	MO_D(token, user, MO_STR, "whose it is; agent: the node's name"),
	MO_D(token, created_at, MO_INT, "when it was made, us"),
	MO_D(token, expires_at, MO_INT, "when it ends, us; MO_NONE: never"),
	MO_D(token, revoked, MO_BOOL, "it is good for nothing any more"),
	MO_D(token, from, MO_STR,
	     "of an agent: join token that it was traded for; null: an admin made it",
	     .omit = true),
	MO_D(token, used, MO_BOOL, "of an agent: its node has spoken with it", .omit = true),
	MO_D(token, nodes, MO_INT,
	     "of a join token: how many nodes may trade it; MO_NONE: of other roles", .omit = true),
	MO_D_LIST(token, joined, MO_STRS, "of a join token: names of the nodes that did",
		  .omit = true, .max = UINT32_MAX),
	MO_D(token, revoked_at, MO_INT, "of an agent: when it was revoked by hand, us",
	     .omit = true),
	MO_D(token, tries, MO_INT, "of an agent: how many unused tokens it took the place of",
	     .omit = true),
};
const struct mo_desc token_desc = MO_DESC(token, token_fields);

const struct token *token_find(const struct state *s, const char *id)
{
	mo_assert(s->tokens || s->n_tokens == 0);
	for (size_t i = 0; id && i < s->n_tokens; i++)
		if (!s->tokens[i].revoked && mo_streq(s->tokens[i].id, id))
			return &s->tokens[i];
	return NULL;
}

bool token_is_join(const struct token *k)
{
	return mo_streq(k->role, "join");
}

bool token_bound_to(const struct token *k, const char *node)
{
	return !k->revoked && mo_streq(k->role, "agent") && k->user && mo_streq(k->user, node);
}

bool token_is_unbound(const struct token *k)
{
	return mo_streq(k->role, "agent") && !k->user;
}

bool token_joined(const struct token *k, const char *node)
{
	return mo_enum_parse((const char *const *)k->joined, k->n_joined, node) >= 0;
}

const struct token *token_put_out(const struct state *s, const char *node)
{
	for (size_t i = s->n_tokens; i > 0; i--)
		if (s->tokens[i - 1].revoked_at != MO_NONE && mo_streq(s->tokens[i - 1].user, node))
			return &s->tokens[i - 1];
	return NULL;
}

bool token_shut_out(const struct state *s, const char *node)
{
	if (!token_put_out(s, node))
		return false;
	for (size_t i = 0; i < s->n_tokens; i++)
		if (token_bound_to(&s->tokens[i], node))
			return false;
	return true;
}
