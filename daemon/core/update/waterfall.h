/* How long each part of a recovery took (incident.waterfall), measured from the records that the
 * recovering job gets. Called by update.c and update_notes.c after each change; nothing here
 * decides what follows. */
#pragma once
#include "daemon/core/state/state.h"

/* Before a change of j: places are kept for its image from now on, or are not. */
void waterfall_image(struct job *j, bool waits, int64_t time);
/* After a change of j: measures the last incident. */
void waterfall_changed(struct job *j, int64_t time);
/* After a sample: iterations from+1 .. j->iteration were done until at, each in step_ms
 * (MO_NONE_F = not known). */
void waterfall_trained(struct job *j, int64_t at, int64_t from, double step_ms);
