/* Which time it is, decided from what clocks say and what the last record says. Pure: the shell
 * reads the clocks.
 *   since the last record      wall clock                                          time goes on
 *   same boot                  within a minute of what CLOCK_BOOTTIME says         from the wall
 * clock, never below the last record
 *   same boot                  further off, synchronised                           from the wall
 * clock, MOVED
 *   same boot                  further off, not synchronised                       as
 * CLOCK_BOOTTIME says, HELD; but from the wall clock, MOVED, when time so far is before
 * CLOCK_SANE_US
 *   another boot               ahead, synchronised or by at most a minute          from the wall
 * clock
 *   another boot               further ahead, not synchronised                     from the wall
 * clock, MOVED: nobody can vouch for the time between
 *   another boot               behind, by at most a minute                         from the last
 * record
 *   another boot               further behind, synchronised                        from the wall
 * clock, MOVED: a clock was ahead once
 *   another boot               further behind, not synchronised                    from the last
 * record, HELD until a time service has set the clock
 * MOVED is a record (REC_CLOCK): the marks from which durations of unfinished jobs count move
 * along, so that nothing of a wrong clock is charged to a job, ends it or makes a node silent;
 * tokens made in the wrong time move too, so that they live as long as was said. The run is looked
 * after in the same way while it lasts. */
#pragma once
#include "daemon/core/state/state.h"

#define CLOCK_FAR_US (60 * 1000000LL)
/* so far ahead at once, the ages of what ended before are not known any more (history.c) */
#define CLOCK_LEAP_US (86400 * 1000000LL)
#define CLOCK_SANE_US (1735689600LL * 1000000) /* 2025-01-01: this program is younger */

/* us; boot: CLOCK_BOOTTIME */
struct clock_reading {
	int64_t wall, boot;
	const char *boot_id;
	bool synced;
};
enum clock_verdict { CLOCK_RIGHT, CLOCK_HELD, CLOCK_MOVED };
/* shift: MOVED: what was T is T + shift. text: what to tell, not of RIGHT; caller frees. */
struct clock_word {
	int verdict;
	int64_t now, shift;
	char *text;
};

void clock_at_start(const struct state *s, const struct clock_reading *r, struct clock_word *ret);
/* In the run: now is the core time of the reading. */
void clock_in_run(int64_t now, const struct clock_reading *r, struct clock_word *ret);
/* Moves what is to move (update.c, for REC_CLOCK). now: the new time. */
void clock_shift(struct state *s, int64_t shift, int64_t now);
