/* A followed stream: reconnects when the controller goes away and comes back, and goes on where
 * it was (Last-Event-ID). */
#pragma once
#include "cli/client.h"

/* Calls fn(arg, data) with the data of each event of this path (with follow=1) until fn returns
 * non-zero (then 0) or an error (exit status). Ctrl-C ends the process. from: events after this
 * seq; -1 = from now on. */
int stream_events(struct cli *cli, const char *path, int64_t from,
		  int (*fn)(void *arg, const char *data), void *arg);
