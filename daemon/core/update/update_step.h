/* Rows of update.c's table: a step was accepted by its agent, reports, is proved gone, is
 * forgotten, or hangs. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
int update_accept(struct core *c, const struct record *r);
int update_step_notes(struct core *c, const struct record *r);
int update_gone(struct core *c, const struct record *r);
int update_forgotten(struct core *c, const struct record *r);
int update_hung(struct core *c, const struct record *r);
