/* The only clock reader. Not for pure rooms. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

int64_t mo_clock_boot_us(void);   /* CLOCK_BOOTTIME */
int64_t mo_clock_mono_ns(void);   /* CLOCK_MONOTONIC: deaths are ordered by it within one boot */
int64_t mo_clock_wall_us(void);   /* CLOCK_REALTIME */
int64_t mo_clock_thread_ns(void); /* CPU time of this thread */
/* A time service holds the wall clock right: the kernel says so, or systemd-timesyncd did since
 * the boot. False also when neither may be asked. */
bool mo_clock_synced(void);

/* Core time: base_us plus CLOCK_BOOTTIME since boot0_us, never going back but by
 * mo_coretime_set(). What base_us is, daemon/core/state/clock.h decides. In whole milliseconds,
 * so that the shown time is the stored time. */
struct mo_coretime {
	int64_t base_us, boot0_us, last_us;
};
void mo_coretime_set(struct mo_coretime *t, int64_t now_us, int64_t boot_us);
int64_t mo_coretime_now(struct mo_coretime *t);
