/* What is known of an attempt that hangs, or may: see update_hang.c. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
int update_hang(struct core *c, const struct record *r);
/* The attempt is over, or begins; how often verdicts were right stays. */
void hang_clear(struct job_hang *h);
