/* See pace.h. */
#include "agent/core/stepd/pace.h"

#define BATCH_AFTER 4 /* wake-ups within the window */
#define WINDOW_US 20000
#define IDLE_TICKS 20

bool pace_woken(struct pace *p, int64_t now_us)
{
	if (now_us - p->window_us > WINDOW_US) {
		p->window_us = now_us;
		p->woken = 0;
	}
	if (++p->woken < BATCH_AFTER)
		return false;
	p->idle_ticks = 0;
	p->batched = true;
	return true;
}

bool pace_ticked(struct pace *p, bool got)
{
	p->idle_ticks = got ? 0 : p->idle_ticks + 1;
	if (p->idle_ticks < IDLE_TICKS)
		return false;
	p->batched = false;
	return true;
}
