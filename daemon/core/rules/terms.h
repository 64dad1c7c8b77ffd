/* What ends for a node after a time of its own: learning (learn.c), and being tried before it takes
 * work again (way_back.c); see terms.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* One ends at that time. */
static inline void terms_add(struct core *c, int64_t at)
{
	c->terms_at = MO_MIN(c->terms_at, at);
}
/* Called when terms_at was reached: ends what is over, and sets the next time to look. */
void terms_pass(struct turn *t);
