/* A rank in words: where it runs, and its place in the mesh. */
#pragma once
#include "daemon/core/state/job.h"

/* "rank 3 on n2 (tp 0, pp 1)"; sizes of 1 are left out. Caller frees. */
char *rank_words(const struct job *j, int64_t rank);
