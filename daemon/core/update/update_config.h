/* update.c's part for REC_CONFIG. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

int update_config(struct core *c, const struct record *r);
