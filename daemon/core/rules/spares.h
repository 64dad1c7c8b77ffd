/* Spare nodes of jobs (cluster.spares): whole nodes that are kept for a job beside its ranks, so
 * that after a failure it goes on without waiting for a node and its checks (decision 034).
 *   kept      a node that is free, is kept for the job, is given to no other, and is asked for the
 *             checks that follow a failure, with the programs of doubt, in its agent's own time
 *   passed    it has answered and nothing keeps the job away from it
 *   left      it does not serve any more: down, drained, found broken; another one is kept
 *   placed    it is one of the nodes of an attempt, and a spare no more (update_place())
 * A job that runs looks for spares where it would stand in the queue itself; nobody waits for a
 * spare, and none is kept while a job ahead of it waits for GPUs. They are free when the job is
 * paused or over. Later checks are those that agents make by themselves. Called by schedule.c. */
#pragma once
#include "daemon/core/rules/place.h"

struct turn;

/* How many of its spares the job lacks and looks for now; 0: none, or it has no ranks beside which
 * they would be. */
int64_t spares_lacked(const struct state *s, const struct job *j);
/* What agents said of spares, and what became of their nodes. True when it emitted something. */
bool spares_judge(struct turn *t);
/* Keeps nodes that are free; takes them from slots. True when it emitted something. */
bool spares_fill(struct turn *t, int64_t id, struct slots *slots);
/* The end of a pass over the whole queue: they are to have their jobs' images. */
void spares_images(struct turn *t);
/* Says that the job is placed on spares of it; before that is recorded. */
void spares_placed(struct turn *t, const struct job *j, const struct place *places,
		   size_t n_places);
/* Its checks are due. */
bool spare_check_due(const struct state *s, const struct node *n);
