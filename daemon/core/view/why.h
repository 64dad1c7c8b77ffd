/* Why a job is as it is; see why.c. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/why_view.h"

void job_why(const struct state *s, const struct job *j, int64_t now, struct why_view *ret);
