/* update.c's part for what the controllers before this one may have done. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

#define RESTORED_JOBS 1000000
/* attempts after the backup that a node is believed to know of */
#define RESTORED_UNKNOWN_MAX 1000000
#define RESTORED_JOBS_S 100 /* more than anybody submits for long */
#define RESTORED_ATTEMPTS 1000
#define RESTORED_ATTEMPTS_S 1
#define RESTORED_EVENTS 1000000000LL
#define RESTORED_EVENTS_S 1000000LL
#define RESTORED_S_MAX (36500 * 86400LL) /* whatever a clock says */

int update_restored(struct core *c, const struct record *r);
int update_obeys(struct core *c, const struct record *r);
int update_strange(struct core *c, const struct record *r);
int update_discard(struct core *c, const struct record *r);
