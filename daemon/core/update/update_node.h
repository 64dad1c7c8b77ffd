/* update.c's part for nodes. */
#pragma once
#include "daemon/core/state/live.h"
#include "daemon/core/state/record.h"

int update_node(struct core *c, const struct record *r);
int update_node_state(struct core *c, const struct record *r);
int update_drain(struct core *c, const struct record *r);
int update_ack(struct core *c, const struct record *r);
int update_leaving(struct core *c, const struct record *r);
int update_health(struct core *c, const struct record *r);
int update_check(struct core *c, const struct record *r);
/* the wait for checks ends, whatever they say */
void checks_over(struct core *c, struct job *j);
