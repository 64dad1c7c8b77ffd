/* How long nothing may move in an attempt, by what it does and by how long its steps took. Pure;
 * called by hang_judge.c.
 *
 * Waiting longer is never wrong: a verdict that is false costs a training's work, a late one costs
 * its minutes. So what a job survived once it may do again, and where nothing is known of its
 * steps the times are those of the slowest starts that anybody reported. */
#pragma once
#include "daemon/core/state/state.h"

/* Microseconds since anything moved. suspect: by iterations and words of the engine alone. Then,
 * by what is seen beside them: a rank is stopped, and another kind of evidence; it alone, or all
 * GPUs spin; all sleep, as they do behind a GPU or a loader, or do where their GPU rests; GPUs spin
 * and nobody knows what cards move; no card moves, while processes may compute; what is written
 * alone, which says little of a program that computes. slow: where a process waits for a disk.
 * spins: so long using processors, where it is, and cards alone are moving. */
struct hang_limits {
	int64_t suspect, two, one, asleep, unread, cards, written, slow, spins;
	int64_t p99; /* of its steps; MO_NONE: there are too few of this attempt */
	bool busy;   /* it imports, loads or compiles: who uses processors moves */
};
#define HANG_SUSPECT_US (10 * 1000000LL) /* the least of suspect, at 100 percent */
#define HANG_STEPS_MIN 20                /* of this attempt, before their times count */

/* percent: of the floors (core_config.hang_percent). */
struct hang_limits hang_limits_of(const struct job *j, int64_t percent);
