/* Events of notes; see note_events.c. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

void note_event(struct turn *t, const struct job *j, const struct step *st, const struct note *n);
/* The first save that is not in checkpoint.dir is reported: true when it was this one. */
bool note_tell_place(struct turn *t, const struct job *j, const struct step *st,
		     const struct note *n);
