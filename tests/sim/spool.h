/* Steps on the disk of their node: spool entries and journals, as an agent has them (spool.c). */
#pragma once
#include "tests/sim/sim.h"

void spool_step(struct sim *s, int node, const struct agent_effect *x); /* AX_SPOOL */
/* Found at the start of an agent: the entry, then every line of its journal. */
void spool_adopt(struct sim *s, int node, struct simstep *st);
void spool_write_note(struct sim *s, int node, const struct agent_effect *x); /* AX_WRITE_NOTE */
void spool_reread(struct sim *s, struct simstep *st);                         /* AX_REREAD */
void spool_read(struct sim *s, struct simstep *st);   /* what is new in its journal */
void spool_forget(struct sim *s, struct simstep *st); /* with its directory */
/* The agent of that node is gone. */
void spool_close(struct sim *s, int node);
/* Segments of its journals that the controller has go. */
void spool_trim(struct sim *s, int node);
