/* Nodes that a job keeps away from after failures that began there, and their cordon. Called by
 * policy.c when what follows a failure is decided, and by schedule.c for the places. */
#pragma once
#include "daemon/core/rules/place.h"

struct turn;
struct verdict;

/* A failure of its present row is to be away from the node. */
bool elsewhere_avoids(const struct job *j, const char *node);
/* As place_in(), without the nodes that the job's failures in a row are to be away from; with them
 * where there is no room otherwise. */
int elsewhere_place(const struct state *s, const struct slots *slots, const struct job *j,
		    struct place **ret, size_t *n_ret, struct waiting *ret_why);
/* Cordons the node of what is proved to be its own, a failure or a straggler (what), within the
 * share of nodes that happens by itself (cordon.h). */
void elsewhere_cordon(struct turn *t, int64_t id, const char *node, const char *what,
		      const char *text);
