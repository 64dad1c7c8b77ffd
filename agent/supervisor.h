/* The agent's end of the socket of a step's supervisor. What the words mean is known to
 * step_talk.c. */
#pragma once
#include <systemd/sd-event.h>
#include "lib/base/buf.h"

struct supervisor;
/* Words came: they are appended to the buffer that was given. ended: it is gone, or more than max
 * bytes lie there unread; no more comes. */
typedef void (*supervisor_fn)(void *arg, bool ended);
/* DIR/sock, dir being open. -ECONNREFUSED, -ENOENT ...: nobody is there. in outlives it. */
int supervisor_connect(sd_event *loop, int dir, struct mo_buf *in, size_t max, supervisor_fn fn,
		       void *arg, struct supervisor **ret);
/* All of it, or a negative errno; then a part may have gone: end it. */
int supervisor_send(struct supervisor *s, const void *data, size_t n);
/* Also within fn. NULL allowed. */
struct supervisor *supervisor_free(struct supervisor *s);
