/* Core time: base_us plus CLOCK_BOOTTIME since boot0_us, never going back but by
 * mo_coretime_set(). What base_us is, daemon/core/state/clock.h decides. In whole milliseconds,
 * so that the shown time is the stored time. */
#pragma once
#include <stdint.h>

struct mo_coretime {
	int64_t base_us, boot0_us, last_us;
};
void mo_coretime_set(struct mo_coretime *t, int64_t now_us, int64_t boot_us);
int64_t mo_coretime_now(struct mo_coretime *t);
