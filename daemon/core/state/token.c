/* See token.h. */
#include "daemon/core/state/token.h"

#include "lib/base/assert.h"

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
