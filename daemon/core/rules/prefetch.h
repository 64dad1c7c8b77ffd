/* Images that people want on nodes before a job needs them: who is asked when, and what came of it.
 * Within pull_parallel, behind the jobs. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* IN_PREFETCH: answered with 202 and its event. */
void prefetch_begin(struct turn *t);
/* The end of a pass over the whole queue: which nodes are asked until the next. */
void prefetch_pass(struct turn *t);
/* What the node says of its images was taken; news: more than how far they are. */
void prefetch_heard(struct turn *t, const char *node, bool news);
/* NULL: there is none, or it is long over. */
const struct prefetch *prefetch_find(const struct core *c, int64_t id);
/* The i-th, ascending; NULL behind the last. */
const struct prefetch *prefetch_at(const struct core *c, size_t i);
void prefetches_clear(struct core *c);
/* With the clock. */
void prefetches_shift(struct core *c, int64_t shift);
