/* What the fence on disk says, and what has to be written so that it says more. The core keeps
 * the truth (agent_fence.c); this is its copy, of which the agent's shell (agent/fence.c) writes
 * the files. */
#pragma once
#include "lib/base/desc.h"

struct fence_entry {
	int64_t job, attempt;
};
/* jobs: newest last */
struct fence_file {
	int64_t epoch;
	struct fence_entry *jobs;
	size_t n_jobs;
};
extern const struct mo_desc fence_file_desc;
/* STATE/fence-boot.json: of which boot the fence is. */
struct fence_boot {
	char *boot_id; /* NULL: not known */
	int64_t epoch;
};
extern const struct mo_desc fence_boot_desc;

struct fence_book {
	struct fence_file file;
	struct fence_boot boot; /* as it is on disk */
	int64_t log_bytes;      /* of the lines since the file was written */
	bool unsaved, unsynced; /* the file lacks something, or its epoch */
};
/* LINE: one for the job and its attempt; when that fails, WHOLE. */
enum fence_write { FENCE_NOTHING, FENCE_LINE, FENCE_WHOLE };

void fence_book_init(struct fence_book *b);
void fence_book_done(struct fence_book *b);
/* A job's highest attempt, as it was read. */
void fence_book_read(struct fence_book *b, int64_t job, int64_t attempt);
/* Whether what cannot be read may be done without: only a boot that is known to be over proves that
 * no order of before is under way. The epoch, which outlives boots, is taken from the boot's file
 * where that is higher. */
bool fence_book_anew(struct fence_book *b, const char *boot_id);
/* The boot's file lacks this boot, or the epoch. */
bool fence_book_boot_due(const struct fence_book *b, const char *boot_id);
enum fence_write fence_book_raise(struct fence_book *b, int64_t job, int64_t attempt,
				  int64_t epoch);
/* What was asked for is on disk; log_bytes: of the lines since the file was written, as they are
 * now. */
void fence_book_wrote(struct fence_book *b, int64_t log_bytes);
