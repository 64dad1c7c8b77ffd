/* The controller (link.c): what is sent is asked of the core, what comes back is queued for it as
 * an event. Nothing here fails: what did not get through is an event too, and the core decides when
 * to try again. One hello, one sync and one urgent message are under way at most: a new one takes
 * the place of the one before. */
#pragma once
#include "agent/manager.h"

int link_new(struct manager *m, struct link **ret, struct mo_error *err);
struct link *link_free(struct link *l);
/* Gives up all that is under way; a join token is traded first. */
void link_hello(struct link *l);
/* The controller holds it until there is something to answer, or the beat has passed. */
void link_sync(struct link *l);
/* Beside the sync, on a connection of its own. */
void link_urgent(struct link *l);
/* To a query; a is borrowed. */
void link_answer(struct link *l, const struct query_answer *a);
