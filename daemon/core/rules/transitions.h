/* What changes a job's state, by job_table.h. Decisions (policy.c, schedule.c, fleet.c) and verbs
 * name a trigger; only job_move() changes a job's state. */
#pragma once
#include "daemon/core/rules/job_table.h"

struct turn;

/* Moves the job by the table and tells it. over: the attempt is over (its GPUs are free).
 * follows: 0, 1 after a failure, 2 after busy ports. */
void job_move(struct turn *t, int64_t id, int trigger, bool over, int follows, const char *reason);
/* T_RETRY after a failure, whose next attempt has to wait so long. */
void job_retry(struct turn *t, int64_t id, int64_t pause_us, const char *reason);
/* The state stays. image: places are kept for it until they have its image. */
void job_reason(struct turn *t, int64_t id, const char *reason, bool image);
void job_intent(struct turn *t, int64_t id, int intent, bool now, int64_t from);
