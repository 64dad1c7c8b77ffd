/* Rows of update.c's table: the states of a job, why it stops, and how it failed. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
int update_job(struct core *c, const struct record *r);
int update_intent(struct core *c, const struct record *r);
int update_fail(struct core *c, const struct record *r);
int update_wait_node(struct core *c, const struct record *r);
int update_incident(struct core *c, const struct record *r);
