/* Tokens as the state has them: whose they are, and which name is put out. Pure readers, called
 * by the rules for tokens (rules/tokens.c, which says how they are traded), by their updates and
 * by the shell. */
#pragma once
#include "daemon/core/state/state.h"

/* NULL: none, or it is revoked */
const struct token *token_find(const struct state *s, const char *id);
bool token_is_join(const struct token *k);
/* an agent's, of no node */
bool token_is_unbound(const struct token *k);
bool token_bound_to(const struct token *k, const char *node);
/* the node traded this join token */
bool token_joined(const struct token *k, const char *node);
/* The node's token that a person revoked last; NULL = its name is not out. */
const struct token *token_put_out(const struct state *s, const char *node);
