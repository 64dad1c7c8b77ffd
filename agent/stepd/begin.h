/* Everything of a supervisor before its first event: the spool entry, its ranks, journal, socket.
 * Its directory is open, and its lock was taken before it left its starter: the description is
 * shared, so it has no gap. */
#pragma once
#include "agent/stepd/stepd.h"

void stepd_init(struct stepd *s); /* nothing is open */
/* 0, or a negative errno with err. The launch is then queued. */
int stepd_open(struct stepd *s, struct mo_error *err);
