/* The highest controller epoch obeyed and the highest attempt seen per job, saved before anything is started, so that after any crash this node still refuses stale commands. The core
 * keeps the truth; this is its copy on disk:
 *   STATE/fence.json   the epoch and the jobs. A new epoch is synced: it must survive power loss.
 *   STATE/fence.log    a line "JOB ATTEMPT" for each launch since. It need only survive the agent: after a power loss the boot id has changed, and launches are never repeated to another
 *                      boot; so no disk flush stands between an order and its ranks. A last line that was cut never counted.
 * Whenever fence.json is written (a new epoch, a long log, the start of an agent) the log begins anew; dying in between leaves lines that say nothing new. */
#include "agent/fence.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "agent/queue.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/wire/json.h"

#define FENCE_BYTES_MAX (64 * 1024 * 1024)
#define FENCE_LOG_MAX (256 * 1024)      /* then it is folded into fence.json */

struct fence_entry { int64_t job, attempt; };
static const struct mo_field fence_entry_fields[] = {MO_F(fence_entry, job, MO_INT), MO_F(fence_entry, attempt, MO_INT)};
static const struct mo_desc fence_entry_desc = MO_DESC(fence_entry, fence_entry_fields);

struct fence_file { int64_t epoch; struct fence_entry *jobs; size_t n_jobs; };
static const struct mo_field fence_file_fields[] = {MO_F(fence_file, epoch, MO_INT), MO_F_VEC(fence_file, jobs, &fence_entry_desc, .max = 1000000)};
static const struct mo_desc fence_file_desc = MO_DESC(fence_file, fence_file_fields);

#define FENCE_JOBS_KEPT 4096             /* newest last; the core forgets older ones too */

struct fence {
	char *path;
	struct fence_file file;
	int log;                         /* fence.log, for appending */
	off_t log_end;                   /* its whole lines */
	bool unsaved, unsynced;          /* fence.json lacks something, or its epoch */
};

struct fence *fence_free(struct fence *f) {
	if (!f)
		return NULL;
	mo_desc_done(&fence_file_desc, &f->file);
	mo_close(f->log);
	free(f->path);
	free(f);
	return NULL;
}

/* True when it changed. */
static bool raise_job(struct fence *f, int64_t job, int64_t attempt) {
	size_t i = 0;
	while (i < f->file.n_jobs && f->file.jobs[i].job != job)
		i++;
	if (job <= 0 || (i < f->file.n_jobs && f->file.jobs[i].attempt >= attempt))
		return false;
	if (i < f->file.n_jobs)
		mo_vec_remove(&fence_entry_desc, f->file.jobs, &f->file.n_jobs, i);
	*MO_ADD(&f->file, jobs, &fence_entry_desc) = (struct fence_entry){.job = job, .attempt = attempt};
	if (f->file.n_jobs > FENCE_JOBS_KEPT)
		mo_vec_remove(&fence_entry_desc, f->file.jobs, &f->file.n_jobs, 0);
	return true;
}

static int read_json(struct fence *f, struct mo_error *err) {
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	_cleanup_(mo_error_done) struct mo_error e = {0};
	int r = mo_read_file(f->path, FENCE_BYTES_MAX, &b);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = wire_decode(&fence_file_desc, b.data ? b.data : "", b.len, false, &f->file, &e);
	return r < 0 ? mo_error_set(err, r, "%s: %s; it protects against stale commands: restore it, or remove it when no step of this node can still be ordered by an old controller", f->path, mo_error_text(&e, r)) : 0;
}

static bool take_line(struct fence *f, char *line) {
	int64_t job, attempt;
	char *rest = line, *first = strsep(&rest, " ");
	if (!rest || mo_parse_i64(first, 1, INT64_MAX, &job) < 0 || mo_parse_i64(rest, 1, INT64_MAX, &attempt) < 0)
		return false;
	raise_job(f, job, attempt);
	return true;
}

static int read_log(struct fence *f, const char *path, struct mo_error *err) {
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	int r = mo_read_file(path, FENCE_BYTES_MAX, &b);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s", path, strerror(-r));
	for (char *line = b.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (!take_line(f, line))
			return mo_error_set(err, -EINVAL, "%s: '%.40s' is not a job and its attempt; it protects against stale commands: restore it, or remove it when no step of this node can still be ordered by an old controller", path, line);
	}
	f->unsaved = b.len > 0;
	return 0;
}

static int write_json(struct fence *f) {
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	wire_encode(&fence_file_desc, &f->file, &b);
	int r = mo_write_file(f->path, b.data, b.len, 0600, true);
	if (r == 0 && ftruncate(f->log, 0) == 0)
		f->log_end = 0;
	if (r == 0)
		f->unsaved = f->unsynced = false;
	return r;
}

/* Whole or not at all: what a full disk took of the line is cut off again. */
static int append(struct fence *f, int64_t job, int64_t attempt) {
	_cleanup_(mo_freep) char *line = mo_printf("%lld %lld\n", (long long)job, (long long)attempt);
	int r = mo_write_all(f->log, line, strlen(line));
	if (r == 0)
		f->log_end += (off_t)strlen(line);
	else if (ftruncate(f->log, f->log_end) < 0)
		r = -errno;
	return r;
}

int fence_open(struct manager *m, struct mo_error *err) {
	_cleanup_(mo_freep) char *log = mo_path(m->config->state_dir, "fence.log");
	struct fence *f = mo_alloc(sizeof(*f));
	m->fence = f;
	f->path = mo_path(m->config->state_dir, "fence.json");
	mo_desc_init(&fence_file_desc, &f->file);
	f->file.epoch = 0;
	f->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->log < 0)
		return mo_error_set(err, -errno, "%s: %s", log, strerror(errno));
	int r = read_json(f, err);
	if (r == 0)
		r = read_log(f, log, err);
	if (r < 0)
		return r;
	f->log_end = lseek(f->log, 0, SEEK_END);
	if (f->unsaved && (r = write_json(f)) < 0)
		mo_log(MO_WARNING, NULL, NULL, "%s: %s; launches are refused until it can be written", f->path, strerror(-r));
	struct steps_event epoch = {.type = AE_FENCE, .epoch = f->file.epoch};
	queue_event(m, &epoch);
	for (size_t i = 0; i < f->file.n_jobs; i++) {
		struct steps_event job = {.type = AE_FENCE, .epoch = f->file.epoch, .job = f->file.jobs[i].job, .attempt = f->file.jobs[i].attempt};
		queue_event(m, &job);
	}
	return 0;
}

int fence_save(struct fence *f, int64_t job, int64_t attempt, int64_t epoch) {
	f->unsynced |= epoch > f->file.epoch;
	f->file.epoch = MO_MAX(f->file.epoch, epoch);
	bool raised = raise_job(f, job, attempt);
	if (!f->unsynced && !f->unsaved && raised && f->log_end < FENCE_LOG_MAX && append(f, job, attempt) == 0)
		return 0;
	f->unsaved |= raised || f->unsynced;
	return f->unsaved ? write_json(f) : 0;
}
