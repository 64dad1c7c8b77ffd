/* The step's journal: one note per line in segments notes.<first n>. All notes of a turn leave
 * in one write(2), so that a stepd killed at any instant leaves whole turns. When the disk is
 * full the notes wait in memory (bounded) and the ranks run on; what does not fit any more is
 * counted and dropped, samples first to go by age. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/stepd/journal.h"
#include "agent/stepd/sources.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/wire/encode.h"

static int segment_open(struct stepd *s, int64_t first)
{
	char name[48];
	snprintf(name, sizeof(name), "notes.%lld", (long long)first);
	_cleanup_(mo_closep) int fd =
		mo_open_at(s->dir_fd, name, O_WRONLY | O_CREAT | O_APPEND, 0600);
	struct stat st;
	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return -errno;
	/* a stepd before us got this far: a step is never run twice */
	return st.st_size > 0 ? -EEXIST : TAKE_FD(fd);
}

int journal_open(struct stepd *s, struct mo_error *err)
{
	struct journal *j = &s->journal;
	j->fd = segment_open(s, 1);
	if (j->fd < 0)
		return mo_error_set(err, j->fd, "%s/notes.1: %s", s->dir,
				    mo_error_text(NULL, j->fd));
	return 0;
}

void journal_add(struct stepd *s, const struct note *n)
{
	struct journal *j = &s->journal;
	if (j->pending.len > STEPD_PENDING_MAX && n->kind == NOTE_SAMPLE) {
		j->dropped++;
		return;
	}
	if (j->pending.len == 0)
		j->pending_first = n->n;
	wire_encode(&note_desc, n, &j->pending);
	mo_buf_add(&j->pending, "\n", 1);
	j->last = n->n;
	s->note_due = true;
	s->urgent_due |= note_urgent(n);
}

static int write_pending(struct stepd *s)
{
	struct journal *j = &s->journal;
	if (j->fd < 0 || j->size >= STEPD_SEGMENT_BYTES) {
		int fd = segment_open(s, j->pending_first);
		if (fd < 0)
			return fd;
		mo_close(j->fd);
		j->fd = fd;
		j->size = 0;
	}
	/* no torn line in the middle of a journal */
	if (j->torn && mo_truncate(j->fd, j->size) < 0)
		return -errno;
	j->torn = false;
	ssize_t n = mo_write(j->fd, j->pending.data, j->pending.len);
	if (n == (ssize_t)j->pending.len) {
		j->size += n;
		j->written = j->last;
		mo_buf_reset(&j->pending);
		return 0;
	}
	int r = n < 0 ? -errno : -ENOSPC;
	if (n > 0 && mo_truncate(j->fd, j->size) < 0) {
		j->torn = true;
		r = -errno;
	}
	return r;
}

void journal_flush(struct stepd *s)
{
	struct journal *j = &s->journal;
	if (j->pending.len == 0)
		return;
	int r = write_pending(s);
	if (r < 0 && j->error == 0)
		mo_log(MO_ERR, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "%s: the journal cannot be written: %s; ranks run on, notes wait in memory: "
		       "free space on this file system",
		       s->dir, mo_error_text(NULL, r));
	if (r == 0 && j->error < 0)
		mo_log(MO_NOTICE, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "%s: the journal is written again, %lld samples were dropped", s->dir,
		       (long long)j->dropped);
	j->error = r;
	if (r < 0)
		stepd_tick_in(s, 500000);
}
