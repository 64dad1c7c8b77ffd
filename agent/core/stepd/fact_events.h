/* What a rank's words are to the supervisor: facts of lines and datagrams as events. Pure. */
#pragma once
#include "agent/core/stepd/stepd_core.h"
#include "agent/core/text/lines.h"

#define FACT_EVENTS_MAX 3
/* The events that follow from one line, or from one datagram, in their order: an iteration comes
 * before the checkpoint made after it. How many. */
size_t fact_events_of_line(const struct line_fact *f, int ret[static FACT_EVENTS_MAX]);
size_t fact_events_of_datagram(const struct line_fact *f, int ret[static FACT_EVENTS_MAX]);
/* The note of such an event; ret is filled anew. wall_us: when it came. */
void fact_note(int event, const struct line_fact *f, int64_t rank, int64_t attempt, int64_t wall_us,
	       struct note *ret);
