/* What a job's samples and phase say of its way: how long an iteration takes, and what the time
 * that passes now is spent on. Pure readers, called by updates, rules and views. */
#pragma once
#include "daemon/core/state/state.h"

#define SAMPLES_RECENT 16 /* newest samples that stand for what is so now */

/* Recent time of an iteration: the median of the newest samples of the newest attempt that has
 * any; 0 unknown. */
int64_t samples_step_us(const struct job *j);
/* enum ledger_category, -1 = training: open until it is known what the time bought. */
int ledger_category(const struct job *j);
