/* The only clock reader. Not for pure rooms. */
#pragma once
#include <stdint.h>

int64_t mo_clock_boot_us(void);   /* CLOCK_BOOTTIME */
int64_t mo_clock_mono_ns(void);   /* CLOCK_MONOTONIC: deaths are ordered by it within one boot */
int64_t mo_clock_wall_us(void);   /* CLOCK_REALTIME */

/* Core time: wall clock at start plus CLOCK_BOOTTIME since, never below `floor_us` (the last record's time) and never going back.
 * In whole milliseconds, so that the shown time is the stored time. */
struct mo_coretime { int64_t base_us, boot0_us, last_us; };
void mo_coretime_start(struct mo_coretime *t, int64_t floor_us);
int64_t mo_coretime_now(struct mo_coretime *t);
