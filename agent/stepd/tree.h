/* All processes of the step (tree.c): killed, and proved gone. */
#pragma once
#include "agent/stepd/stepd.h"

void tree_open_cgroup(struct stepd *s);
void tree_kill(struct stepd *s); /* one pass; repeated by tree_tick until empty */
void tree_tick(struct stepd *s);
/* One pass over all descendants of the calling process: how many living ones got SIGKILL. */
size_t tree_kill_descendants(void);
bool tree_is_empty(struct stepd *s);
/* Queues SE_EMPTY once after each kill, when nothing is left. */
void tree_check_empty(struct stepd *s);
int64_t tree_oom_kills(const struct stepd *s); /* the cgroup's count, 0 when unknown */
void tree_close(struct stepd *s);
