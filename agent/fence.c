/* The highest controller epoch obeyed and the highest attempt seen per job, saved before
 * anything is started, so that after any crash this node still refuses stale commands. The core
 * keeps the truth; this is its copy on disk:
 *   STATE/fence.json   the epoch and the jobs. A new epoch is synced: it must survive power loss.
 *   STATE/fence-boot.json  the boot that it is of, and the epoch once more: where a lost power has
 *                      emptied the others, a new boot proves that nothing of before is under way
 *   STATE/fence.log    a line "JOB ATTEMPT" for each launch since. It need only survive the
 *                      agent: after a power loss the boot id has changed, and launches are never
 *                      repeated to another
 *                      boot; so no disk flush stands between an order and its ranks. A last line
 *                      that was cut never counted.
 * An agent may be killed between the name of a file and its sync: the next one syncs the directory
 * before it reads, or it would obey an epoch that a lost power takes back.
 * Whenever fence.json is written (a new epoch, a long log, the start of an agent) the log begins
 * anew; dying in between leaves lines that say nothing new. */
#include "agent/fence.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "agent/core/agent/fence_book.h"
#include "agent/queue.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define FENCE_BYTES_MAX (64 * 1024 * 1024)

struct fence {
	char *path, *boot_path;
	const char *boot_id; /* the manager's */
	struct fence_book book;
	int log; /* fence.log, for appending */
};

struct fence *fence_free(struct fence *f)
{
	if (!f)
		return NULL;
	fence_book_done(&f->book);
	mo_close(f->log);
	free(f->path);
	free(f->boot_path);
	free(f);
	return NULL;
}

static int read_described(const char *path, const struct mo_desc *desc, void *ret,
			  struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file(path, FENCE_BYTES_MAX, &b);

	return r < 0 ? r : wire_decode(desc, b.data ? b.data : "", b.len, false, ret, err);
}

static int read_json(struct fence *f, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error e = { 0 };
	int r = read_described(f->path, &fence_file_desc, &f->book.file, &e);

	if (r == -ENOENT)
		return 0;
	return r < 0 ? mo_error_set(err, r,
				    "%s: %s; it protects against stale commands: restore it, or "
				    "remove it when no step of this node can still be ordered by "
				    "an old controller",
				    f->path, mo_error_text(&e, r))
		     : 0;
}

static bool take_line(struct fence *f, char *line)
{
	int64_t job, attempt;
	char *rest = line, *first = strsep(&rest, " ");
	if (!rest || mo_parse_i64(first, 1, INT64_MAX, &job) < 0 ||
	    mo_parse_i64(rest, 1, INT64_MAX, &attempt) < 0)
		return false;
	fence_book_read(&f->book, job, attempt);
	return true;
}

static int read_log(struct fence *f, const char *path, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file(path, FENCE_BYTES_MAX, &b);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	for (char *line = b.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!take_line(f, line))
			return mo_error_set(err, -EINVAL,
					    "%s: '%.40s' is not a job and its attempt; it protects "
					    "against stale commands: restore it, or remove it when "
					    "no step of this node can still be ordered by an old "
					    "controller",
					    path, line);
	}
	f->book.unsaved = b.len > 0;
	f->book.log_bytes = (int64_t)b.len;
	return 0;
}

static int write_described(const char *path, const struct mo_desc *desc, const void *what)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(desc, what, &b);
	return mo_write_file(path, b.data, b.len, 0600, true);
}

/* Before the fence: never does a file of an earlier boot say that a fence of this one is over. */
static int write_boot(struct fence *f)
{
	if (!fence_book_boot_due(&f->book, f->boot_id))
		return 0;
	struct fence_boot now = { .boot_id = (char *)f->boot_id, .epoch = f->book.file.epoch };
	int r = write_described(f->boot_path, &fence_boot_desc, &now);

	if (r < 0)
		return r;
	mo_str_set(&f->book.boot.boot_id, now.boot_id);
	f->book.boot.epoch = now.epoch;
	return 0;
}

static int write_json(struct fence *f)
{
	int r = write_boot(f);

	if (r == 0)
		r = write_described(f->path, &fence_file_desc, &f->book.file);
	if (r < 0)
		return r;
	fence_book_wrote(&f->book, mo_truncate(f->log, 0) == 0 ? 0 : f->book.log_bytes);
	return 0;
}

/* Whole or not at all: what a full disk took of the line is cut off again. */
static int append(struct fence *f, int64_t job, int64_t attempt)
{
	_cleanup_(mo_freep) char *line =
		mo_printf("%lld %lld\n", (long long)job, (long long)attempt);
	int r = mo_write_all(f->log, line, strlen(line));

	if (r == 0)
		fence_book_wrote(&f->book, f->book.log_bytes + (int64_t)strlen(line));
	else if (mo_truncate(f->log, (off_t)f->book.log_bytes) < 0)
		r = -errno;
	return r;
}

/* What is damaged on the boot that wrote it is refused: an order of before may be under way. */
static int read_all(struct fence *f, const char *log, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error e = { 0 };

	if (read_described(f->boot_path, &fence_boot_desc, &f->book.boot, NULL) < 0) {
		mo_desc_done(&fence_boot_desc, &f->book.boot);
		mo_desc_init(&fence_boot_desc, &f->book.boot);
	}
	int r = read_json(f, &e);
	if (r == 0)
		r = read_log(f, log, &e);
	f->book.unsaved |= fence_book_boot_due(&f->book, f->boot_id);
	if (r >= 0)
		return 0;
	if (!fence_book_anew(&f->book, f->boot_id))
		return mo_error_set(err, r, "%s", mo_error_text(&e, r));
	mo_log(MO_WARNING, NULL, NULL,
	       "%s; the node has booted since, so that nothing of before runs: it begins anew with "
	       "epoch %lld",
	       mo_error_text(&e, r), (long long)f->book.file.epoch);
	return 0;
}

int fence_open(struct manager *m, struct mo_error *err)
{
	_cleanup_(mo_freep) char *log = mo_path(m->config->state_dir, "fence.log");
	struct fence *f = mo_alloc(sizeof(*f));
	m->fence = f;
	f->path = mo_path(m->config->state_dir, "fence.json");
	f->boot_path = mo_path(m->config->state_dir, "fence-boot.json");
	f->boot_id = m->boot_id;
	fence_book_init(&f->book);
	f->log = mo_open_at(AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (f->log < 0)
		return mo_error_set(err, -errno, "%s: %s", log, strerror(errno));
	int r = mo_sync_dir(m->config->state_dir);
	if (r < 0)
		return mo_error_set(err, r, "state_dir %s: %s", m->config->state_dir, strerror(-r));
	r = read_all(f, log, err);
	if (r < 0)
		return r;
	if (f->book.unsaved && (r = write_json(f)) < 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "%s: %s; launches are refused until it can be written", f->path,
		       strerror(-r));
	struct agent_event epoch = { .type = AE_FENCE, .epoch = f->book.file.epoch };
	queue_event(m, &epoch);
	for (size_t i = 0; i < f->book.file.n_jobs; i++) {
		struct agent_event job = { .type = AE_FENCE,
					   .epoch = f->book.file.epoch,
					   .job = f->book.file.jobs[i].job,
					   .attempt = f->book.file.jobs[i].attempt };
		queue_event(m, &job);
	}
	return 0;
}

int fence_save(struct fence *f, int64_t job, int64_t attempt, int64_t epoch)
{
	enum fence_write what = fence_book_raise(&f->book, job, attempt, epoch);

	if (what == FENCE_NOTHING || (what == FENCE_LINE && append(f, job, attempt) == 0))
		return 0;
	return write_json(f);
}
