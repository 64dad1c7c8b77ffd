/* See fence_book.h. */
#include "agent/core/agent/fence_book.h"

#include "lib/base/assert.h"

#define JOBS_RETAINED 4096         /* the core forgets older ones too */
#define LOG_BYTES_MAX (256 * 1024) /* then it is folded into the file */

static const struct mo_field fence_entry_fields[] = {
	MO_D(fence_entry, job, MO_INT, "number of the job"),
	MO_D(fence_entry, attempt, MO_INT, "highest attempt that this node has seen"),
};
static const struct mo_desc fence_entry_desc = MO_DESC(fence_entry, fence_entry_fields);

static const struct mo_field fence_file_fields[] = {
	MO_D(fence_file, epoch, MO_INT, "highest epoch of a controller that this node has seen"),
	MO_D_VEC(fence_file, jobs, &fence_entry_desc, "highest attempt of each job, newest last",
		 .max = 1000000),
};
const struct mo_desc fence_file_desc = MO_DESC(fence_file, fence_file_fields);

static const struct mo_field fence_boot_fields[] = {
	MO_D(fence_boot, boot_id, MO_STR, "boot in which the fence was written last", .max = 64),
	MO_D(fence_boot, epoch, MO_INT, "highest epoch of a controller that was seen by then"),
};
const struct mo_desc fence_boot_desc = MO_DESC(fence_boot, fence_boot_fields);

void fence_book_init(struct fence_book *b)
{
	*b = (struct fence_book){ 0 };
	mo_desc_init(&fence_file_desc, &b->file);
	mo_desc_init(&fence_boot_desc, &b->boot);
	b->file.epoch = b->boot.epoch = 0;
}

void fence_book_done(struct fence_book *b)
{
	mo_desc_done(&fence_file_desc, &b->file);
	mo_desc_done(&fence_boot_desc, &b->boot);
}

/* True when it changed. */
static bool raise_job(struct fence_file *f, int64_t job, int64_t attempt)
{
	size_t i = 0;

	while (i < f->n_jobs && f->jobs[i].job != job)
		i++;
	if (job <= 0 || (i < f->n_jobs && f->jobs[i].attempt >= attempt))
		return false;
	if (i < f->n_jobs)
		mo_vec_remove(&fence_entry_desc, f->jobs, &f->n_jobs, i);
	*MO_ADD(f, jobs, &fence_entry_desc) =
		(struct fence_entry){ .job = job, .attempt = attempt };
	if (f->n_jobs > JOBS_RETAINED)
		mo_vec_remove(&fence_entry_desc, f->jobs, &f->n_jobs, 0);
	mo_assert(f->n_jobs <= JOBS_RETAINED);
	return true;
}

void fence_book_read(struct fence_book *b, int64_t job, int64_t attempt)
{
	raise_job(&b->file, job, attempt);
}

bool fence_book_anew(struct fence_book *b, const char *boot_id)
{
	if (!b->boot.boot_id || mo_streq(b->boot.boot_id, boot_id))
		return false;
	b->file.epoch = MO_MAX(b->file.epoch, b->boot.epoch);
	b->unsaved = b->unsynced = true;
	return true;
}

bool fence_book_boot_due(const struct fence_book *b, const char *boot_id)
{
	return !mo_streq(b->boot.boot_id, boot_id) || b->boot.epoch < b->file.epoch;
}

enum fence_write fence_book_raise(struct fence_book *b, int64_t job, int64_t attempt, int64_t epoch)
{
	b->unsynced |= epoch > b->file.epoch;
	b->file.epoch = MO_MAX(b->file.epoch, epoch);
	mo_assert(b->file.epoch >= epoch); /* it never falls */
	bool raised = raise_job(&b->file, job, attempt);
	bool line = raised && !b->unsynced && !b->unsaved && b->log_bytes < LOG_BYTES_MAX;

	b->unsaved |= raised || b->unsynced;
	if (line)
		return FENCE_LINE;
	return b->unsaved ? FENCE_WHOLE : FENCE_NOTHING;
}

void fence_book_wrote(struct fence_book *b, int64_t log_bytes)
{
	mo_assert(log_bytes >= 0);
	b->unsaved = b->unsynced = false;
	b->log_bytes = log_bytes;
}
