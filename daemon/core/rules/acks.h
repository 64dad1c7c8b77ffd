/* What a reply says of what is stored; see acks.c. */
#pragma once
#include "daemon/core/state/live.h"

/* The acknowledgements alone, for the answer to an urgent message: commands travel on the sync, and
 * what was not sent must stay due. */
void core_acks(const struct core *c, const char *node, struct sync_reply *ret);
