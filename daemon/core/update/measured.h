/* update.c's part for REC_MEASURED. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

int update_measured(struct core *c, const struct record *r);
