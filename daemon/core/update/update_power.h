/* update.c's part for the site's fence_command. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

int update_power(struct core *c, const struct record *r);
/* The node was heard: what was asked about its silence is over. */
void power_forget(struct node *n);
