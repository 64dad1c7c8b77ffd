/* What a job's list of checkpoints says: which of them are of use, and what a path that somebody
 * announces means. Pure readers, called by updates, rules and views. `attempt` of an entry: the
 * attempt of this job that wrote it, 0 = one behind the backup that was restored, MO_NONE = it lay
 * there before. Ascending iteration. */
#pragma once
#include "daemon/core/state/state.h"

/* a scan of checkpoint.dir older than this is done again before an attempt */
#define SCAN_FRESH_US (30 * 1000000LL)

/* which one an announcement means: its number, its path's, else the iteration reached; < 0 =
 * unknown, it is ignored then */
int64_t checkpoint_iteration(const struct note *n, int64_t reached);
/* of checkpoint.dir, by the text alone; true for NULL and for a job without one */
bool checkpoint_inside(const struct job *j, const char *path);
/* A path below checkpoint.dir as the node resolves it: the same below checkpoint.dir as the
 * recipe names it (caller frees). NULL: it is none, or is so already. */
char *checkpoint_as_named(const struct job *j, const char *path);
const struct checkpoint *checkpoint_find(const struct job *j, int64_t iteration);
/* checkpoint.dir belongs to one unfinished job at a time, from its first attempt on: does holder
 * keep j out? */
bool checkpoint_dir_held(const struct job *holder, const struct job *j);
/* the engine saved where nothing would be resumed from */
bool checkpoint_elsewhere(const struct job *j, const struct note *n);
/* of one checkpoint; NULL when it is the directory of all */
const char *checkpoint_entry_path(const struct job *j, const char *path);
/* where a completed job's checkpoints are to be scanned once more, NULL = nowhere */
const char *checkpoint_end_node(const struct job *j);
bool checkpoint_usable(const struct checkpoint *c);
/* the newest usable one that the present attempt saved since then; NULL: none yet */
const struct checkpoint *checkpoint_since(const struct job *j, int64_t at);
/* whole, and saved when the loss was bad */
bool checkpoint_tainted(const struct checkpoint *c);
/* as people are shown it; what it points at stays c's */
struct checkpoint checkpoint_shown(const struct checkpoint *c);
/* deleted with this reason: by checkpoint.keep, and no node has said that it is gone */
extern const char checkpoint_removing_text[];
bool checkpoint_removing(const struct checkpoint *c);
/* the engine's word counts as its marker */
bool checkpoint_announced(const struct job *j, const struct checkpoint *c);
/* its content is to be read and compared with what checksums there are: it is suspected and nobody
 * has yet */
bool checkpoint_compares(const struct checkpoint *c);
/* What is of a later time was written since, us: by the file system's clock where its files were
 * seen, else by the controller's; MO_NONE not known. */
int64_t checkpoint_seen(const struct checkpoint *c);
/* suspect or tainted: a person may take it all the same, by this name alone */
bool checkpoint_named_suspect(const struct job *j, int64_t iteration);
int64_t checkpoint_newest_at_most(const struct job *j, int64_t limit, bool own_only);
/* NULL: the scan did not see it */
const struct found_checkpoint *scan_found(const struct scan_result *r, int64_t iteration);
