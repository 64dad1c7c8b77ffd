/* Keeps core.slots and core.tally what slots_init() and tally_count() would make of the state, by
 * making those of the nodes anew that changed: the cost follows the change. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

/* What is kept of that node follows at the next slots_refresh(); NULL or not known: nothing. */
void slots_touch(struct core *c, const char *node);
void slots_touch_places(struct core *c, const struct job *j);
void slots_touch_all(struct core *c);
/* The record was applied: the nodes that it is about. What it does to others, or to all, who
 * applies it says. */
void slots_changed(struct core *c, const struct record *r);
/* Before slots are read, and at the end of each turn. */
void slots_refresh(struct core *c);
/* How often nodes failed, as placement compares them; it ages slowly, so once an hour and when
 * there is another failure. */
void slots_score(struct core *c);
/* Counts the jobs anew; the nodes are made at the next slots_refresh(). */
void slots_reindex(struct core *c);
void tally_job(struct core *c, int state, int sign);
