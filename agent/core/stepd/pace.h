/* How a stream of a rank is read: each time that something comes, or, when that is too often, by a
 * timer: 10,000 lines a second cost a few wake-ups, not 10,000. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* All zero: whenever something comes. */
struct pace {
	bool batched; /* by the timer */
	int woken;    /* within a window */
	int64_t window_us;
	int idle_ticks;
};
/* Something came, at now_us. True: from now on by the timer. */
bool pace_woken(struct pace *p, int64_t now_us);
/* The timer had it read. True: it was quiet for long enough to go back. */
bool pace_ticked(struct pace *p, bool got);
