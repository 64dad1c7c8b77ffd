/* Where the next attempt resumes. Pure; called by schedule.c, and by whoever asks before there
 * is a job: a submit, and moectl checkpoints. */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/base/error.h"

/* Where the next attempt resumes: 0 and *ret (-1 = fresh); 1 = the job waits, 2 = the job fails,
 * both with the reason in err. */
int checkpoint_choose(const struct job *j, int64_t *ret, struct mo_error *err);
/* Of a job that ended well without an iteration of its own, as its checkpoint was of the last
 * one: whose that was and what to do to train again. NULL: it trained. Caller frees. */
char *checkpoint_nothing_left(const struct state *s, const struct job *j);
/* The recipe's sizes with which the checkpoint cannot be loaded, because its format does not
 * reshard (caller frees); NULL = it can be, or c is NULL. */
char *checkpoint_misfit(const struct checkpoint *c, const struct recipe *r);
/* What a new job with this checkpoint.dir would do by what was found there, before there is a job:
 * the decision is the job's own. added: e's own directory was added to it. 0 with *ret (-1 = it
 * starts afresh), 1 = it waits, 2 = it fails, both with the reason. */
int checkpoint_would(const struct engine *e, const char *dir, bool added,
		     const struct scan_result *found, int64_t *ret, struct mo_error *err);
/* What a submit is warned of: the newest checkpoint of that job does not reshard, and the recipe
 * has other sizes (caller frees); NULL = it can be resumed. */
char *checkpoint_no_resume(const struct job *saved, const struct recipe *r);
