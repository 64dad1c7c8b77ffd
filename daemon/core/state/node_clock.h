/* The clock of a node's boot (CLOCK_BOOTTIME) beside core time, as messages tell it: each says what
 * that clock said when it was sent. What is heard of it is never early, and late by as much as the
 * message was on its way; so the fastest of the newest messages counts. It is forgotten with each
 * hello and when core time is set. Times in us of core time, of the clock in ns. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct node_clock {
	/* core time at which the clock was 0, by the fastest message; how much of it was added for
	 * a drift that no message has shown since; when a message came last */
	int64_t began, slack, heard_at;
	/* the same of the messages of the window at hand, and how many these are */
	int64_t next;
	int n;
	bool whole; /* there was a window before it */
};

/* A message comes now. mono_ns: MO_NONE it does not say. */
void node_clock_hear(struct node_clock *c, int64_t mono_ns, int64_t now);
/* When the clock said this: it was so at most *ret_error before or after what is returned. MO_NONE:
 * not known, too few messages were heard. */
int64_t node_clock_at(const struct node_clock *c, int64_t mono_ns, int64_t *ret_error);
