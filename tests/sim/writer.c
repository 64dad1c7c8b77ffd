/* See writer.h. */
#include "tests/sim/writer.h"

#include <fcntl.h>
#include <stdlib.h>

#include "agent/stepd/entry.h"
#include "agent/stepd/journal.h"
#include "agent/stepd/sources.h"
#include "lib/base/fd.h"

struct writer {
	struct stepd stepd; /* of which only the journal is there */
	void (*again)(void *arg, int64_t us);
	void *arg;
};

/* agent/stepd/sources.h */
void stepd_tick_in(struct stepd *stepd, int64_t us)
{
	const struct writer *w = (const struct writer *)(const void *)stepd;

	w->again(w->arg, us);
}

struct writer *writer_new(const char *dir, void (*again)(void *arg, int64_t us), void *arg)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_freep) char *lock = mo_path(dir, "lock");
	struct writer *w = mo_alloc(sizeof(*w));

	w->again = again;
	w->arg = arg;
	w->stepd.dir = mo_strdup(dir);
	w->stepd.journal.fd = -1;
	mo_desc_init(&spool_desc, &w->stepd.spool);
	w->stepd.dir_fd = mo_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	w->stepd.lock_fd = w->stepd.dir_fd >= 0 ? mo_lock_file(lock) : -1;
	if (w->stepd.lock_fd < 0 || entry_load(&w->stepd, &err) < 0 ||
	    journal_open(&w->stepd, &err) < 0)
		return writer_free(w);
	return w;
}

struct writer *writer_free(struct writer *w)
{
	if (!w)
		return NULL;
	mo_close(w->stepd.journal.fd);
	mo_close(w->stepd.lock_fd);
	mo_close(w->stepd.dir_fd);
	mo_desc_done(&spool_desc, &w->stepd.spool);
	mo_buf_done(&w->stepd.journal.pending);
	free(w->stepd.dir);
	free(w);
	return NULL;
}

const struct launch *writer_launch(const struct writer *w)
{
	return &w->stepd.spool.launch;
}

void writer_add(struct writer *w, const struct note *n)
{
	journal_add(&w->stepd, n);
}

void writer_flush(struct writer *w)
{
	journal_flush(&w->stepd);
}

bool writer_waits(const struct writer *w)
{
	return w->stepd.journal.pending.len > 0;
}

int64_t writer_written(const struct writer *w)
{
	return w->stepd.journal.written;
}

void writer_segment_ends(struct writer *w)
{
	w->stepd.journal.size = STEPD_SEGMENT_BYTES;
}
