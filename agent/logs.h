/* What the ranks wrote (logs.c): read for who asks, and let go in time. */
#pragma once
#include "agent/manager.h"

int logs_new(struct manager *m, struct logs **ret);
struct logs *logs_free(struct logs *l);
void logs_query(struct logs *l, const struct command *c);
void logs_retain(struct logs *l);
