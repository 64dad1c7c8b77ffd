/* Tokens: made and revoked by admins, traded by agents; see tokens.c. */
#pragma once
#include <stdbool.h>

struct turn;

/* IN_TOKEN, IN_TOKEN_REVOKE, IN_TOKEN_USED */
void token_verb(struct turn *t);
/* With what the node's agent spoke just now. */
void token_reported(struct turn *t, const char *node, bool expired);
