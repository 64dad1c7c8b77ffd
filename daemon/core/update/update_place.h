/* Row of update.c's table: an attempt gets its nodes, GPUs and ports. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
int update_place(struct core *c, const struct record *r);
