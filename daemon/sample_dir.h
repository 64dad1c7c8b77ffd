/* The directory STATE/samples: which files are there, how large and how old, and which of them go.
 * Part of sample_files.h, which alone calls it. */
#pragma once
#include <uthash.h>

#include "daemon/sample_files.h"

struct sample_file {
	int64_t attempt, bytes;
	int64_t written_us; /* wall clock: which is the oldest */
	bool known;         /* its heads were read */
	bool reported;      /* that of a block the body cannot be read */
	struct sample_block *blocks;
	size_t n_blocks;
};
struct run_files {
	int64_t job;
	struct sample_file *files; /* ascending */
	size_t n;
	UT_hash_handle hh;
};
struct sample_files {
	struct manager *owner;
	char *dir;
	struct run_files *runs;
	int64_t bytes, swept_us; /* of all; boot us */
	bool reported;           /* that nothing can be written; until it can */
};

char *sample_dir_path(const struct sample_files *s, int64_t job, int64_t attempt);
/* NULL: none of it. */
struct run_files *sample_dir_run(struct sample_files *s, int64_t job);
/* That of an attempt, made where there is none yet; valid until another is made or one goes. */
struct sample_file *sample_dir_file(struct sample_files *s, int64_t job, int64_t attempt);
/* Files of jobs that are no more go, and the heads of those that have ended; each hour. */
void sample_dir_sweep(struct sample_files *s);
bool sample_dir_sweep_due(const struct sample_files *s);
/* Room for n bytes within samples_max, of files that are older; false: there is none. */
bool sample_dir_room(struct sample_files *s, int64_t n);
