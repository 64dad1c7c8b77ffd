/* The highest epoch and attempts that this node has seen, on disk (fence.c). */
#pragma once
#include "agent/manager.h"

int fence_open(struct manager *m, struct mo_error *err); /* queues AE_FENCE for each entry */
/* Also what an earlier call could not save. Nothing changed and nothing unsaved: 0 without
 * touching the disk. */
int fence_save(struct fence *f, int64_t job, int64_t attempt, int64_t epoch);
struct fence *fence_free(struct fence *f);
