/* Of what most jobs of one engine say alike (the words of the ranks' command and of engine.prepare,
 * the environment, the recipe, what was answered), a job has what its set has at the same place,
 * by reference (shared.h, lib/base/desc_lend.h). Only memory knows: all is as long as it was, and
 * read as before. Who changes any of it has it copied before. Called by shared.c, and by those of
 * update who do. */
#pragma once
#include "daemon/core/state/shared.h"

/* s, if it shares, has those words and variables of its set that are equal to its own. */
void words_lend(struct submit *s);
/* The same of its recipe, promise and warnings too: of a job in the state, which update alone
 * changes. */
void words_lend_all(struct submit *s);
void words_own(struct submit *s);    /* has copies of all of it again */
void words_return(struct submit *s); /* has nothing in their places: to be freed */
/* A copy of s with nothing else in it, which the caller owns. */
struct submit *words_of(const struct submit *s);
