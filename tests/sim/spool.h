/* Steps on the disk of their node: spool entries and journals, as an agent has them (spool.c). */
#pragma once
#include "tests/sim/sim.h"

void spool_step(struct sim *s, int node, const struct agent_effect *x); /* AX_SPOOL */
/* Found at the start of an agent: the entry, then every line of its journal. */
void spool_adopt(struct sim *s, int node, struct simstep *st);
void spool_write_note(struct sim *s, int node, const struct agent_effect *x); /* AX_WRITE_NOTE */
void spool_reread(struct sim *s, const struct simstep *st);
/* Segments of its journals that the controller has go. */
void spool_trim(struct sim *s, int node);
