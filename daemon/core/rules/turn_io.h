/* What goes into a turn and what comes out of it: an input (core_input.h) becomes records, which
 * the shell stores, and effects (effect.h), which it carries out once they are stored. Plain values
 * without behaviour. */
#pragma once
#include "daemon/core/rules/core_input.h"
#include "daemon/core/rules/effect.h"

struct core_out {
	struct record *records;
	size_t n_records;
	struct effect *effects;
	size_t n_effects;
};
void core_out_done(struct core_out *out);
