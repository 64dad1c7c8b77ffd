/* The GPU-second ledger of a job. */
#pragma once
#include "daemon/core/state/state.h"

void ledger_charge(struct job *j, int64_t time);
/* The job is over: of its windows only those within the last hour are known from then on. */
void ledger_ends(struct job *j);
void ledger_charge_as(struct job *j, int64_t time, int category);
/* Iterations from+1 .. to were done, which explains so much of the time since the last charge
 * (progress_explains_us(), by what was known before them). */
void ledger_charge_train(struct job *j, int64_t time, int64_t from, int64_t to, int64_t explained);
/* The attempt failed: an iteration that was not finished is no first pass. */
void ledger_charge_failed(struct job *j, int64_t time);
/* A checkpoint is there whose save nobody announced: what no iteration explains went into it. */
void ledger_charge_saved(struct job *j, int64_t time);
