/* What jobs that are not over lay claim to: their names, and the directories that they save to.
 * Found by the text, so that a submit looks at those it meets and not at all that wait. Derived
 * from the jobs: update.c's parts keep it beside core.unfinished, core_reindex() makes it anew. */
#pragma once
#include "daemon/core/state/live.h"

/* Of a job that is not over, with what it says now; removed before what it says changes, and before
 * it is over. */
void claims_add_job(struct core *c, const struct job *j);
void claims_remove_job(struct core *c, const struct job *j);
void claims_clear(struct claims *k);
/* The claims to exactly that text, by ascending job; *ret_n may be 0, as for NULL. Until the next
 * record. */
const struct claim *claims_of(const struct claims *k, const char *text, size_t *ret_n);
/* Ascending ids of jobs that claim that clean directory, one that it lies in, or one in it. Returns
 * how many; the caller frees. */
size_t claims_around(const struct core *c, const char *dir, int64_t **ret);
