/* Of what most jobs of one engine say alike (the words of the ranks' command and of engine.prepare,
 * the environment: 17 of 21 kB of a job of Primus), a job has what its set has at the same place,
 * by reference (shared.h). Only memory knows: the lists are as long as they were, and read as
 * before. Who changes a word, or frees a list, has them copied or returned before. Called by
 * shared.c, and by retained.c where texts go. */
#pragma once
#include "daemon/core/state/shared.h"

/* s, which shares, has those of its set that are equal to its own. */
void words_lend(struct submit *s);
void words_own(struct submit *s);    /* has copies of these again */
void words_return(struct submit *s); /* has nothing in their places: to be freed, or cleared */
