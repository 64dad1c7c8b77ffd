/* The store failed: nothing may be said any more. */
#pragma once
#include "daemon/manager.h"

/* Stops the loop with an error: ranks run on, the next start replays. */
void fatal_stop(struct manager *m, const char *why);
