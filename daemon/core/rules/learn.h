/* The first days of a node (health.learn); see learn.c. */
#pragma once
#include "daemon/core/state/state.h"

struct turn;

/* What would cordon it if it were not new. */
void learn_tell(struct turn *t, const char *node);
/* Ends the time when it is over; returns when that is, INT64_MAX = never. */
int64_t learn_pass(struct turn *t, const struct node *n);
/* A person ends it. */
void learn_ack(struct turn *t, const struct node *n);
