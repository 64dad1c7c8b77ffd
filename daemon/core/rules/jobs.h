/* What follows from a job's own state; see jobs.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* an iteration advances while it moved within max(3 x step, this) */
#define STALL_MIN_US (10 * 1000000LL)

struct turn;

/* True when it emitted something. */
bool job_act(struct turn *t, int64_t id);
