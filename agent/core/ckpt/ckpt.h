/* Is this directory entry a complete checkpoint? Pure judgement over a listing that a shell
 * (moe-ckpt) made; the engine's layout says what completeness means. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"

#define CKPT_GRIDS_MAX 8
struct ckpt_file {
	char *name; /* relative to the entry, "/" between */
	int64_t bytes, mtime_ns, inode;
	/* why its content cannot be whole (a cut archive), a link; NULL = nothing known */
	char *damage;
	int64_t crc;   /* CRC32C, MO_NONE = not made */
	int64_t least; /* of a list in a pickle: it has at least so many bytes */
};
struct ckpt_marker {
	char *name; /* of alternatives the one that is there */
	bool present;
	int64_t bytes, mtime_ns;
	/* why its content is not whole (JSON that does not parse, a cut pickle), NULL fine */
	char *damage;
	int64_t iteration, world; /* what a JSON marker says of itself, MO_NONE = nothing */
	/* JSON marker with files: {name: bytes}; bytes MO_NONE = any size, of layout.listed */
	bool lists_files;
	struct ckpt_file *files;
	size_t n_files;
	bool contains; /* layout.contains was found in it */
	uint32_t said; /* bit i: unless_said of layout.needs[i] was found in it */
};
struct ckpt_entry {
	char *name;
	int64_t iteration;
	bool directory;
	/* it cannot be a checkpoint whatever it holds: a link, a save that never ended; NULL */
	char *damage;
	bool too_many; /* the listing was cut */
	bool thorough; /* files were opened: damage tells what is in them */
	bool asked;    /* files of grids were asked how many there are: parts tells */
	int64_t mtime_ns;
	/* regular files, markers included; links with damage */
	struct ckpt_file *files;
	size_t n_files;
	struct ckpt_marker *markers;
	size_t n_markers; /* one per layout marker, in order */
	/* what the files of layout.grids[i] say of their number, 0 = nothing */
	int64_t parts[CKPT_GRIDS_MAX];
	/* of a grid with `tied`: what they say of the numbers of `says`, and of that one; 0 = as
	 * the first */
	int64_t stated[CKPT_GRIDS_MAX][CKPT_NUMBERS_MAX], tied[CKPT_GRIDS_MAX];
	/* bit k: that they also say that there are files of its variants[k] */
	uint32_t due[CKPT_GRIDS_MAX];
	/* sizes without which it cannot be loaded (layout.grids[i].fixes), NULL = any */
	char *fixed;
	/* what layout.grids[i].told_by say: excused holds, the numbers of share and sum; 0 =
	 * nothing */
	bool excused[CKPT_GRIDS_MAX];
	int64_t share[CKPT_GRIDS_MAX], sum[CKPT_GRIDS_MAX];
};
void ckpt_files_done(struct ckpt_file *files, size_t n);
void ckpt_files_sort(struct ckpt_file *files, size_t n); /* by name */
void ckpt_entry_done(struct ckpt_entry *e);

/* NONE: the layout has none */
enum ckpt_tracker { TRACKER_NONE, TRACKER_MISSING, TRACKER_LINK, TRACKER_DAMAGED, TRACKER_SAYS };

enum ckpt_level { LEVEL_MARKER, LEVEL_SIZES, LEVEL_CRC };
extern const char *const ckpt_level_names[3];
struct ckpt_rules;
int ckpt_rules_new(const struct ckpt_layout *layout, struct ckpt_rules **ret, struct mo_error *err);
struct ckpt_rules *ckpt_rules_free(struct ckpt_rules *r);
MO_DEFINE_CLEANUP(struct ckpt_rules, ckpt_rules_free)
/* Content of a tracker file -> its iteration, a plain number or an entry's name; "release" =
 * INT64_MAX. TRACKER_SAYS or TRACKER_DAMAGED. */
enum ckpt_tracker ckpt_tracker_parse(const struct ckpt_rules *r, const char *text, size_t n,
				     int64_t *ret);
/* Whether a name in the directory is an entry, and of which iteration; unfinished: one whose
 * name says that its save never ended. */
bool ckpt_is_entry(const struct ckpt_rules *r, const char *name, int64_t *ret_iteration,
		   bool *ret_unfinished);
/* Whether a file with this name looks like a model's state. */
bool ckpt_looks_like_state(const struct ckpt_layout *layout, const char *name, int64_t bytes);
/* Whether a file of this name is part of a checkpoint of this layout wherever it lies; in an entry
 * (by its name) shards are as well. */
bool ckpt_is_part(const struct ckpt_rules *r, const char *name, bool in_entry);
/* Whether it is what a run writes beside its state, as its name says. */
bool ckpt_is_beside(const struct ckpt_rules *r, const char *name);
/* What a file must be by its name, and the names (between blanks) of the members that a JSON
 * marker must have, NULL = any. */
enum ckpt_format ckpt_format_of(const struct ckpt_rules *r, const char *name);
const char *ckpt_members_of(const struct ckpt_rules *r, const char *marker);
/* The words (iterations of the layout) behind which this file's pickle has its iteration; NULL =
 * it says none. Damage when the pickle says another one than the entry's name, NULL = fine or
 * not known. */
const char *ckpt_iteration_words(const struct ckpt_rules *r, const char *name);
/* What an entry is asked. world: ranks that must have written it, MO_NONE = any; announced: the
 * engine says that it is complete, which counts where the layout says so. */
struct ckpt_question {
	enum ckpt_level level;
	int64_t world;
	bool announced;
	enum ckpt_tracker tracker;
	int64_t tracker_says;
};
/* NULL = complete; else why not, caller frees. */
char *ckpt_judge(const struct ckpt_rules *r, const struct ckpt_entry *e,
		 const struct ckpt_question *q);
/* A complete one that the engine cannot load as it lies there (by_tracker): why, and what to do;
 * NULL = it can. */
char *ckpt_held(const struct ckpt_rules *r, const struct ckpt_entry *e,
		const struct ckpt_question *q);
/* that part alone */
char *ckpt_judge_tracker(const struct ckpt_rules *r, const struct ckpt_entry *e,
			 const struct ckpt_question *q);
