/* The table by which the supervisor runs: what each event does in each state. docs/states.md is
 * printed from it. */
#pragma once
#include "agent/core/stepd/stepd_core_state.h"

/* NULL: the event is ignored there. */
stepd_fn stepd_table_fn(int state, int event);
