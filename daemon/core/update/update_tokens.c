/* update.c's part for tokens; which of them go with a change says rules/tokens.c. Called by
 * core_update() only. */
#include "daemon/core/update/update_tokens.h"

#include <errno.h>

#include "daemon/core/state/token.h"
#include "daemon/core/update/edit.h"

static void drop(struct state *s, const struct token *k)
{
	mo_vec_remove(&token_desc, s->tokens, &s->n_tokens, (size_t)(k - s->tokens));
}

int update_token(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	struct token *from;

	if (!r->token->id)
		return -EINVAL;
	for (size_t i = s->n_tokens; r->token->from && r->token->user && i > 0; i--) {
		const struct token *k = &s->tokens[i - 1];

		if (token_bound_to(k, r->token->user) && k->from && !k->used &&
		    !mo_streq(k->id, r->token->from))
			drop(s, k);
	}
	from = token_edit(s, r->token->from);
	if (from && token_is_join(from) && r->token->user && !token_joined(from, r->token->user))
		mo_strs_add(&from->joined, &from->n_joined, r->token->user);
	mo_desc_copy(&token_desc, MO_ADD(s, tokens, &token_desc), r->token);
	return 0;
}

/* Names stay out for as long as there is a token that one of them could come back with. */
static void forget_put_out(struct state *s)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < s->n_tokens; i++)
		if (!s->tokens[i].revoked &&
		    (token_is_join(&s->tokens[i]) || token_is_unbound(&s->tokens[i])))
			oldest = token_is_unbound(&s->tokens[i])
					 ? 0
					 : MO_MIN(oldest, s->tokens[i].created_at);
	for (size_t i = s->n_tokens; i > 0; i--)
		if (s->tokens[i - 1].revoked_at != MO_NONE && s->tokens[i - 1].revoked_at < oldest)
			drop(s, &s->tokens[i - 1]);
}

/* Also one that is not there: a record of an earlier version. */
int update_token_revoked(struct core *c, const struct record *r)
{
	struct token *k = token_edit(&c->owned, r->token_revoked->id);

	if (!k)
		return 0;
	if (!r->token_revoked->put_out) {
		drop(&c->owned, k);
	} else {
		const struct token *before = token_put_out(&c->owned, k->user);

		k->revoked = true;
		k->revoked_at = r->time;
		if (before)
			drop(&c->owned, before);
	}
	forget_put_out(&c->owned);
	return 0;
}

int update_token_used(struct core *c, const struct record *r)
{
	struct token *k = token_edit(&c->owned, r->token_used->id),
		     *from = k ? token_edit(&c->owned, k->from) : NULL;

	if (!k)
		return -EINVAL;
	k->used = true;
	if (from && k->user && token_bound_to(from, k->user))
		drop(&c->owned, from);
	return 0;
}

int update_node_token(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);

	if (!n)
		return -EINVAL;
	n->agent.token_expired = r->node_token->expired;
	c->queue_dirty = true;
	return 0;
}
