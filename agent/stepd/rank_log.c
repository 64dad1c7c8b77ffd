/* See rank_log.h. */
#include "agent/stepd/rank_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/core/stepd/log_time.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

static struct mo_log_where where(const struct stepd *s, const struct rank *r)
{
	return (struct mo_log_where){ .job = s->spool.launch.job,
				      .attempt = s->spool.launch.attempt,
				      .rank = r->rank,
				      .node = s->spool.node };
}

int rank_log_open(struct stepd *s, struct rank *r)
{
	_cleanup_(mo_freep) char *path =
		mo_path(s->spool.log_dir, "rank-%lld.log", (long long)r->rank);
	r->log_fd = mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640);
	if (r->log_fd < 0)
		return -errno;
	struct stat st;
	r->log_size = mo_stat_fd(r->log_fd, &st) == 0 ? st.st_size : 0;
	return 0;
}

/* Not worth a word where it fails: a full disk is said of the log itself. It is tried again with
 * the next output; what was written until then may be left out of what is read by time. */
static void note_time(struct stepd *s, struct rank *r)
{
	struct log_time t = { .at_us = mo_clock_wall_us(), .byte = r->log_base + r->log_size };
	int64_t passed = t.at_us - r->log_timed_us;

	if (r->log_timed_us && passed >= 0 && passed < LOG_TIMES_STEP_US)
		return;
	_cleanup_(mo_freep) char *path = mo_path(s->spool.log_dir, LOG_TIMES, (long long)r->rank);
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0640);
	struct stat st;

	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return;
	int64_t whole = st.st_size - st.st_size % (int64_t)sizeof(t);
	if (mo_write_at(fd, &t, sizeof(t), whole) == sizeof(t))
		r->log_timed_us = t.at_us;
}

/* Until the log is renamed all is as it was; a log that somebody removed counts as renamed. */
static int log_move(struct stepd *s, struct rank *r, const char *next_base)
{
	long long rank = r->rank;
	_cleanup_(mo_freep) char *path = mo_path(s->spool.log_dir, "rank-%lld.log", rank);
	_cleanup_(mo_freep) char *old = mo_path(s->spool.log_dir, "rank-%lld.log.1", rank);
	_cleanup_(mo_freep) char *times = mo_path(s->spool.log_dir, LOG_TIMES, rank);
	_cleanup_(mo_freep) char *old_times = mo_path(s->spool.log_dir, LOG_TIMES_OLD, rank);
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld\n", (long long)(r->log_base + r->log_size));
	int e = mo_write_file(next_base, text, (size_t)n, 0640, false);

	if (e < 0)
		return e;
	if (mo_rename(path, old) < 0 && errno != ENOENT)
		return -errno;
	(void)mo_rename(times, old_times);
	r->log_timed_us = 0;
	r->log_base += r->log_size;
	r->log_size = 0;
	r->log_fd = mo_close(r->log_fd);
	return 0;
}

/* rank-R.log becomes rank-R.log.1; rank-R.base says how many bytes came before the new file, so
 * that readers can go on by offset. What may need space comes first, under another name. Whatever
 * fails, the next write goes on from there. */
static int log_rotate(struct stepd *s, struct rank *r)
{
	long long rank = r->rank;
	_cleanup_(mo_freep) char *base = mo_path(s->spool.log_dir, "rank-%lld.base", rank);
	_cleanup_(mo_freep) char *next_base =
		mo_path(s->spool.log_dir, "rank-%lld.base.next", rank);

	if (r->log_fd >= 0) {
		int e = log_move(s, r, next_base);
		if (e < 0)
			return e;
	}
	if (mo_rename(next_base, base) < 0 && errno != ENOENT)
		return -errno;
	return rank_log_open(s, r);
}

static void log_failed(struct stepd *s, struct rank *r, size_t lost, int error)
{
	if (r->log_error == 0) {
		struct mo_log_where w = where(s, r);
		mo_log(MO_ERR, NULL, &w,
		       "log of rank %lld cannot be written: %s; its output is dropped until it "
		       "can: free space below %s",
		       (long long)r->rank, strerror(-error), s->spool.log_dir);
	}
	r->log_error = error;
	r->log_dropped += (int64_t)lost;
}

void rank_log_write(struct stepd *s, struct rank *r, const char *data, size_t n)
{
	if (n == 0)
		return;
	if (r->log_fd < 0 || r->log_size >= s->spool.log_bytes) {
		int e = log_rotate(s, r);
		if (e < 0) {
			log_failed(s, r, n, e);
			return;
		}
	}
	note_time(s, r);
	if (r->log_dropped > 0) {
		char text[96];
		int len =
			snprintf(text, sizeof(text),
				 "[moe-stepd: %lld bytes of output are missing here: disk full]\n",
				 (long long)r->log_dropped);
		if (mo_write(r->log_fd, text, (size_t)len) == len) {
			r->log_size += len;
			r->log_dropped = 0;
			r->log_error = 0;
		}
	}
	ssize_t done = mo_write(r->log_fd, data, n);
	if (done > 0)
		r->log_size += done;
	if (done < (ssize_t)n)
		log_failed(s, r, n - (size_t)MO_MAX(done, 0), done < 0 ? -errno : -ENOSPC);
}
