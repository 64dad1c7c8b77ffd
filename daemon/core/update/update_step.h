/* Rows of update.c's table: a step was taken by its agent, told of itself, is proved gone, forgotten,
 * or hangs. */
#pragma once
#include "daemon/core/state/record.h"

struct core;
int update_accept(struct core *c, const struct record *r);
int update_step_notes(struct core *c, const struct record *r);
int update_gone(struct core *c, const struct record *r);
int update_forgotten(struct core *c, const struct record *r);
int update_hung(struct core *c, const struct record *r);
