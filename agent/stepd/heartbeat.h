/* The ranks' heartbeat files (heartbeat.c), read by a child. */
#pragma once
#include "agent/stepd/stepd.h"

/* A socket to tell that rank's notify socket; a negative errno, errno
 * as it was set. */
int notify_connect(const struct stepd *s, int64_t rank);
/* After the ranks: a child that reads their heartbeat files. */
void heartbeat_start(struct stepd *s);
