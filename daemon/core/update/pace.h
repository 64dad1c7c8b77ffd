/* How long iterations take, as samples come: daemon/core/state/pace.h. */
#pragma once
#include "daemon/core/state/pace.h"

/* at: index of a sample that is new, or knows more than before. */
void pace_sample(struct job *j, size_t at);
