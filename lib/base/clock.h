/* The one place that reads a clock: a program that links another has a time of its own
 * (docs/decisions/010-seams.md). Not for pure rooms. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

int64_t mo_clock_boot_us(void); /* CLOCK_BOOTTIME */
/* The same in ns: deaths are ordered by it. CLOCK_MONOTONIC stands while a machine is suspended. */
int64_t mo_clock_mono_ns(void);
int64_t mo_clock_wall_us(void);   /* CLOCK_REALTIME */
int64_t mo_clock_thread_ns(void); /* CPU time of this thread */
/* A time service holds the wall clock right: the kernel says so, or systemd-timesyncd did since
 * the boot. False also when neither may be asked. */
bool mo_clock_synced(void);
/* Nothing happens for so long: for programs that wait with others' files, never on a loop. */
void mo_clock_rest_ms(int ms);
/* The same, but no longer than until the descriptor can be read or its other end is closed; whether
 * the time passed. */
bool mo_clock_rest_unless(int fd, int ms);
