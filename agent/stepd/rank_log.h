/* The log file of a rank, and its one predecessor. What cannot be written is counted and dropped,
 * never kept back: ranks must not wait for a disk. */
#pragma once
#include "agent/stepd/stepd.h"

int rank_log_open(struct stepd *s, struct rank *r); /* 0, or a negative errno */
void rank_log_write(struct stepd *s, struct rank *r, const char *data, size_t n);
