/* Rows of update.c's table: a job that was submitted. It makes room among those that are over. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
int update_submit(struct core *c, const struct record *r);
