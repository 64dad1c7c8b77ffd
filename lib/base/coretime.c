/* See coretime.h. */
#include "lib/base/coretime.h"

#include "lib/base/clock.h"
#include "lib/base/util.h"

/* Whole milliseconds: documents show milliseconds, and what is shown and what is stored must be
 * the same instant. */
static int64_t whole_ms(int64_t us)
{
	return us - us % 1000;
}

void mo_coretime_set(struct mo_coretime *t, int64_t now_us, int64_t boot_us)
{
	t->base_us = now_us;
	t->boot0_us = boot_us;
	t->last_us = whole_ms(now_us);
}

int64_t mo_coretime_now(struct mo_coretime *t)
{
	int64_t now = whole_ms(t->base_us + mo_clock_boot_us() - t->boot0_us);

	t->last_us = MO_MAX(now, t->last_us);
	return t->last_us;
}
