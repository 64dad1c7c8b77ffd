/* One seed. */
#pragma once
#include "tests/sim/sim.h"

/* What happened in the runs of one process. */
struct counts {
	int64_t faults[_FAULT_N], moves[_JOB_STATE_N * _JOB_STATE_N], rows[ROWS_MAX], events, jobs;
};
void run_seed(uint64_t seed, const struct less *less, bool trace, struct counts *c);
