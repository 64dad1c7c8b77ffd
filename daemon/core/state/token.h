/* Tokens as the state has them: whose they are, and which name is put out. Pure readers, called
 * by the rules for tokens (rules/tokens.c, which says how they are traded), by their updates and
 * by the shell. */
#pragma once
#include "lib/base/desc.h"

struct state;
/* hash: SHA-256 hex of the secret. A token of role agent speaks for the node `user`; without one
 * (a local cluster's, and those of earlier versions) on loopback only. Role join: no caller, but
 * good for tokens of `nodes` nodes until it expires. */
struct token {
	char *id, *hash, *role, *user;
	int64_t created_at, expires_at;
	bool revoked;
	/* agent: id of the token that it was traded for; NULL = made by an admin */
	char *from;
	/* agent: its node has spoken with it: what it was traded for is then of no more use */
	bool used;
	int64_t nodes; /* join: how many nodes may trade it; MO_NONE of other roles */
	char **joined;
	size_t n_joined; /* join: those that did */
	/* agent: revoked by hand then: kept to keep the name out while others could bring it
	 * back */
	int64_t revoked_at;
	int64_t tries; /* agent: how many that were never used it took the place of */
};
extern const struct mo_desc token_desc;

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
/* It is, and has no other token since: its agent is refused, however much it runs. */
bool token_shut_out(const struct state *s, const char *node);
