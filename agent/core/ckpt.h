/* Is this directory entry a complete checkpoint? Pure judgement over a listing that a shell (moe-ckpt) made; the engine's layout says what completeness means. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"

struct ckpt_file { char *name; int64_t bytes, mtime_ns; };             /* name relative to the entry, "/" between */
struct ckpt_marker {
	char *name;
	bool present; int64_t bytes, mtime_ns;
	char *damage;            /* why its content is not whole (JSON that does not parse, a cut pickle), NULL fine */
	int64_t iteration, world;/* what a JSON marker says of itself, MO_NONE = nothing */
	bool lists_files; struct ckpt_file *files; size_t n_files;     /* JSON marker with files: {name: bytes} */
};
struct ckpt_entry {
	char *name; int64_t iteration;
	bool directory;
	int64_t mtime_ns;
	struct ckpt_file *files; size_t n_files;       /* regular files, markers included */
	struct ckpt_marker *markers; size_t n_markers; /* one per layout marker, in order */
};
void ckpt_entry_done(struct ckpt_entry *e);

enum ckpt_tracker { TRACKER_NONE, TRACKER_MISSING, TRACKER_DAMAGED, TRACKER_SAYS };    /* NONE: the layout has none */
/* Content of a tracker file -> its iteration; "release" = INT64_MAX. TRACKER_SAYS or TRACKER_DAMAGED. */
enum ckpt_tracker ckpt_tracker_parse(const char *text, size_t n, int64_t *ret);

enum ckpt_level { LEVEL_MARKER, LEVEL_SIZES };
struct ckpt_rules;
int ckpt_rules_new(const struct ckpt_layout *layout, struct ckpt_rules **ret, struct mo_error *err);
struct ckpt_rules *ckpt_rules_free(struct ckpt_rules *r);
MO_DEFINE_CLEANUP(struct ckpt_rules, ckpt_rules_free)
/* Whether a name in the directory is an entry, and of which iteration. */
bool ckpt_is_entry(const struct ckpt_rules *r, const char *name, int64_t *ret_iteration);
/* NULL = complete; else why not, caller frees. world: ranks that must have written it, MO_NONE = any. */
char *ckpt_judge(const struct ckpt_rules *r, const struct ckpt_entry *e, enum ckpt_level level, int64_t world, enum ckpt_tracker tracker, int64_t tracker_says);
