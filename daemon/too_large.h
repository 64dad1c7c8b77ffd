/* A job that needs more GPUs than its cluster has, however idle that is. It is no error, because
 * nodes may still join; whoever submits it learns at once what it waits for and what would run
 * on what is there, and whoever asks `why` hears the same. Reads the recipe a few times, at most
 * 64 kB of it each. */
#pragma once
#include "daemon/core/state/state.h"

struct too_large {
	char *text; /* "needs 64 GPUs; the cluster has 4 (the largest node 2)" */
	char *next; /* what would run, or why not; NULL: nothing that is there */
};
/* False, and nothing in *ret: the cluster is large enough. */
bool too_large(const struct state *s, const struct submit *spec, struct too_large *ret);
void too_large_done(struct too_large *t);
