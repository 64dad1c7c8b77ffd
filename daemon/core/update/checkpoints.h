/* The checkpoints of a job, from announcements, scans and verifications; where the next attempt resumes. */
#pragma once
#include "daemon/core/state/state.h"

#define SCAN_FRESH_US (30 * 1000000LL)     /* a scan of checkpoint.dir older than this is done again before an attempt */

int64_t checkpoint_iteration(const struct note *n, int64_t reached); /* which one an announcement means: its number, its path's, else the iteration reached; < 0 = unknown, it is ignored then */
bool checkpoint_inside(const struct job *j, const char *path);   /* of checkpoint.dir, by the text alone; true for NULL and for a job without one */
/* A path below checkpoint.dir as the node resolves it: the same below checkpoint.dir as the recipe names it (caller frees). NULL: it is none, or is so already. */
char *checkpoint_as_named(const struct job *j, const char *path);
void checkpoint_note(struct job *j, const struct note *n, int64_t time);
void checkpoint_scan(struct job *j, const struct scan_result *r, int64_t time);
struct checkpoint *checkpoint_find(const struct job *j, int64_t iteration);
/* Where the next attempt resumes: 0 and *ret (-1 = fresh); 1 = the job waits, 2 = the job fails, both with the reason in err. */
int checkpoint_choose(const struct job *j, int64_t *ret, struct mo_error *err);
/* Of a job that ended well without an iteration of its own, as its checkpoint was of the last one: whose that was and what
 * to do to train again. NULL: it trained. Caller frees. */
char *checkpoint_nothing_left(const struct state *s, const struct job *j);
void checkpoint_supersede(struct job *j, int64_t resume, int64_t attempt, int64_t time); /* after restart --from: what lies beyond is resumed no more */
const struct checkpoint *checkpoint_surplus(const struct job *j);
void checkpoint_remove(const struct job *j, struct checkpoint *c);     /* what lies outside checkpoint.dir stays as it is, with the reason */
bool checkpoint_removing(const struct checkpoint *c);
bool checkpoint_any_removing(const struct job *j);
void checkpoint_removal_over(struct job *j, const struct scan_result *r);             /* r: the scan at the end, NULL = there is none */
int64_t checkpoint_prune_order(const struct job *j);
void checkpoint_pruned(struct job *j, const struct scan_result *r);
/* checkpoint.dir belongs to one unfinished job at a time, from its first attempt on: does holder keep j out? */
bool checkpoint_dir_held(const struct job *holder, const struct job *j);
bool checkpoint_elsewhere(const struct job *j, const struct note *n);   /* the engine saved where nothing would be resumed from */
void checkpoint_withdraw(struct job *j, int64_t iteration);             /* of this attempt, announced, and it went elsewhere */
const char *checkpoint_entry_path(const struct job *j, const char *path);   /* of one checkpoint; NULL when it is the directory of all */
const char *checkpoint_end_node(const struct job *j);            /* where a completed job's checkpoints are to be looked at once more, NULL = nowhere */
void checkpoint_forget_manifests(struct job *j);                 /* of what the attempt that is over has written again without saying so */
bool checkpoint_usable(const struct checkpoint *c);
int64_t checkpoint_newest_at_most(const struct job *j, int64_t limit, bool own_only);
