/* The indexes of struct core, made anew from a state that came from elsewhere (a snapshot,
 * quarantine). */
#pragma once
#include "daemon/core/state/live.h"

void core_reindex(struct core *c);
