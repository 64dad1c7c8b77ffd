/* What of a job moves with each iteration: what a follower of the event stream is told of the job
 * that it looks at. Pure; called by daemon/streams.c. */
#pragma once
#include "daemon/core/state/state.h"

struct progress_view {
	int64_t job;
	int state;
	int64_t attempt, iteration, steps;
	double eta_s;
	struct sample *sample;
};
extern const struct mo_desc progress_view_desc;
/* ret: initialised. */
void progress_view_of(const struct job *j, struct progress_view *ret);
