/* What every source of the turn may do: queue an event, ask for the tick (and be watched: wake.h).
 * It decides nothing; loop.c does. */
#pragma once
#include "agent/stepd/stepd.h"

#define PROGRESS_US 200000 /* from one telling of the ranks' progress to the next */

/* Queues an event; the strings of note are taken over (note is empty afterwards; NULL = no
 * fact). The returned event is valid until the next one is queued. */
struct stepd_event *stepd_queue(struct stepd *s, int type, struct note *note);
/* the tick timer: batched reading, killing, progress */
void stepd_tick_in(struct stepd *s, int64_t us);
/* some rank's progress may have changed */
void stepd_progress(struct stepd *s);
