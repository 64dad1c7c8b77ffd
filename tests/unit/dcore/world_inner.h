/* Shared by world*.c and toy.c. */
#pragma once
#include "tests/unit/dcore/world.h"

/* The records of the last step go to the shadow, which must be equal; and what holds of every
 * state. */
void world_check(struct world *w);
/* As it is once it was written and read: inputs and effects can be. What is too large for a message
 * is copied. Caller frees. */
void *written_and_read(const struct mo_desc *d, const char *what, const void *obj);

/* What a toy tells of its steps, with notes or without. */
void toy_reports(const struct toy *t, bool notes, struct step_report **steps, size_t *n);
/* The head of its next sync, initialised. */
void toy_sync(const struct world *w, struct toy *t, struct agent_sync *sync);
/* What moves of the ranks that it is asked for. */
void toy_tell_motion(const struct world *w, const struct toy *t, struct agent_sync *sync);
/* Carries out an answer; results of scans go to the sync that will be next. */
void toy_obey(struct world *w, struct toy *t, struct agent_sync *sync, const struct sync_reply *r);
