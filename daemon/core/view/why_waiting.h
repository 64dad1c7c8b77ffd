/* Why a job waits; see why_waiting.c. */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/core/view/why_view.h"

/* What the job waits for, in the words of the queue, with the evidence of now. */
void why_waiting(const struct state *s, const struct job *j, const struct waiting *w, int64_t now,
		 struct why_view *ret);
