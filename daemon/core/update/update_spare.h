/* Nodes that are kept for a job beside its ranks (cluster.spares): what of them is stored. Who
 * keeps and leaves them is rules/spares.h. Called by update.c and its parts only. */
#pragma once
#include "daemon/core/state/record.h"

struct core;

int update_spare(struct core *c, const struct record *r);
/* It is a spare no more; what it was is charged to its job. */
void spare_end(struct core *c, struct node *n, int64_t time);
/* The same for all spares of the job. */
void spares_end(struct core *c, const struct job *j, int64_t time);
/* A spare is to be checked, as never before in its boot. */
void spare_ask(struct node *n, int64_t time);
