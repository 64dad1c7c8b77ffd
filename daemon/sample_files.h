/* Every iteration of every run: STATE/samples/j-7.a2 has the samples of that attempt, block by
 * block (daemon/core/view/sample_block.h). The state holds 10,000 of a job whole and the rest
 * thinned; what is here is written from it, once no late line can change it any more, long before
 * it would be thinned. So nothing is synced: what the loss of power takes from the end of a file is
 * still in the state, and is written again. Within what samples_max says: beyond it the oldest
 * files go.
 *
 * What never happens: a file is needed to decide anything; a full disk is made fuller; what stands
 * in files that cannot be read is made up. */
#pragma once
#include "daemon/core/view/sample_block.h"
#include "daemon/manager.h"

/* Also removes the files of jobs that are no more. */
void sample_files_new(struct manager *m);
struct sample_files *sample_files_free(struct sample_files *s);
/* Something happened to this job (after its records are stored): writes what is due. */
void sample_files_take(struct manager *m, int64_t job);
int64_t sample_files_bytes(const struct sample_files *s);
/* Goes over all that is known of a run, by attempt and iteration: of an attempt what its file has,
 * then what only the state does. block: of each block of a file; true: its samples are wanted too.
 * sample: false: that is enough. Both borrow. A block that cannot be read is said in the log, and
 * left out. */
struct sample_reader {
	bool (*block)(void *arg, const struct sample_block *b);
	bool (*sample)(void *arg, const struct sample *s);
	void *arg;
};
void sample_files_read(struct manager *m, const struct job *j, const struct sample_reader *r);
