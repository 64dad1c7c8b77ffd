/* The tokens of this node: its own, kept in STATE/agent.token (0600), and what token_file holds.
 * Files only; link.c speaks with the controller. */
#pragma once
#include "agent/options.h"

struct node_token;
struct node_token *node_token_new(const struct agent_config *config);
struct node_token *node_token_free(struct node_token *t);
/* Reads both files anew. What cannot be read or may be read by others is logged, once for each
 * kind of trouble. */
void node_token_load(struct node_token *t);
/* Reads them and chooses what to speak with from now on: the own one, unless the controller has
 * refused it: then what token_file holds, then the own one of before, which alone a controller
 * restored from a backup may know. NULL: there is none. */
const char *node_token_choose(struct node_token *t);
const char *node_token(const struct node_token *t);
/* The file that it was read from; "there is none" without a token. */
const char *node_token_where(const struct node_token *t);
/* What token_file holds is only good for a trade. */
bool node_token_is_join(const char *token);
/* The controller does not know this token. */
void node_token_refused(struct node_token *t, const char *token);
/* What token_file holds, when that is another than the one spoken with, and was not tried in
 * vain since it was read; NULL else. */
const char *node_token_other(const struct node_token *t);
void node_token_in_vain(struct node_token *t, const char *token);
/* Keeps a new token of this node, durably, and speaks with it from now on. Not kept: a negative
 * errno, and the one before stays in use. */
int node_token_keep(struct node_token *t, const char *token);
const char *node_token_path(const struct node_token *t);
