/* What follows from a job's own state; see jobs.c. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct turn;

/* True when it emitted something. */
bool job_act(struct turn *t, int64_t id);
