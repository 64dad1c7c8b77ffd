/* What each rank does (enum rank_doing), for people: by the words of its engine; while a hang is
 * suspected by what was judged of it (hang_judge.c); nothing but silence of a node that is not
 * heard. Pure: called by hang_judge.c and views. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct job;
struct state;

/* By the words of engines alone. */
int rank_engine_doing(const struct state *s, const struct job *j, size_t rank);
/* -1: it does not run. */
int rank_doing_of(const struct state *s, const struct job *j, size_t rank, int64_t now);
/* "7 collective-stuck (0-2, 4-7), 1 host-stuck (3)"; NULL: all that run step, or none does. Caller
 * frees. */
char *ranks_doing_text(const struct state *s, const struct job *j, int64_t now);
