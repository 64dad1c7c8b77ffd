/* Records that prove steps gone; see proof.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* how: the proof in words. st is stale afterwards. */
void proof_step(struct turn *t, int64_t job, const struct step *st, const char *how);
/* boot NULL: every step of the node (fence); else those of other boots. */
void proof_node(struct turn *t, const char *node, const char *boot, const char *how);
