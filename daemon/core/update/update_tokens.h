/* update.c's part for tokens. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

int update_token(struct core *c, const struct record *r);
int update_token_revoked(struct core *c, const struct record *r);
int update_token_used(struct core *c, const struct record *r);
int update_node_token(struct core *c, const struct record *r);
