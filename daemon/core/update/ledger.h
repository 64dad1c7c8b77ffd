/* The GPU-second ledger of a job. */
#pragma once
#include "daemon/core/state/state.h"

void ledger_charge(struct job *j, int64_t time);
void ledger_charge_as(struct job *j, int64_t time, int category);
void ledger_charge_train(struct job *j, int64_t time, int64_t from, int64_t to);
