/* A step's journal, in its directory on the disk of its node: written by production's supervisor
 * (agent/stepd/journal.c, notes.c), read, continued and trimmed by production's agent
 * (agent/journal.c, steps.c). */
#pragma once
#include "tests/sim/sim.h"

/* Caller frees. */
char *notes_dir(const struct sim *s, const struct simstep *st);
/* A supervisor begins; false: it may not, or died within that. */
bool notes_open(struct sim *s, struct simstep *st);
void notes_add(struct simstep *st, const struct note *n);
/* Its turn ends: all of it is written in one piece, or waits; false: it died within that. */
bool notes_flush(struct sim *s, struct simstep *st);
/* It waits for its disk. */
bool notes_wait(const struct simstep *st);
void notes_close(struct simstep *st);
