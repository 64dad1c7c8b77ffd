/* update.c's part for REC_STRAGGLER. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
struct job_straggler;

int update_straggler(struct core *c, const struct record *r);
/* The attempt is over: none stands out. Those that were found stay. */
void straggler_clear(struct job_straggler *g);
