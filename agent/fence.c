/* STATE/fence.json: the highest controller epoch obeyed and the highest attempt seen per job. Saved before anything is started, so that after any crash this node still refuses stale
 * commands. The core keeps the truth; this is its copy on disk. A new epoch is synced: it must survive power loss. An attempt need only survive the agent: after a power loss the boot
 * id has changed, and launches are never repeated to another boot; so no disk flush stands between an order and its ranks. */
#include <errno.h>
#include <string.h>
#include "agent/manager.h"
#include "lib/base/fd.h"
#include "lib/wire/json.h"

#define FENCE_BYTES_MAX (64 * 1024 * 1024)

struct fence_entry { int64_t job, attempt; };
static const struct mo_field fence_entry_fields[] = {MO_F(fence_entry, job, MO_INT), MO_F(fence_entry, attempt, MO_INT)};
static const struct mo_desc fence_entry_desc = MO_DESC(fence_entry, fence_entry_fields);

struct fence_file { int64_t epoch; struct fence_entry *jobs; size_t n_jobs; };
static const struct mo_field fence_file_fields[] = {MO_F(fence_file, epoch, MO_INT), MO_F_VEC(fence_file, jobs, &fence_entry_desc, .max = 1000000)};
static const struct mo_desc fence_file_desc = MO_DESC(fence_file, fence_file_fields);

#define FENCE_JOBS_KEPT 4096             /* newest last; the core forgets older ones too */

struct fence { char *path; struct fence_file file; bool unsaved, unsynced; };

struct fence *fence_free(struct fence *f) {
	if (!f)
		return NULL;
	mo_desc_done(&fence_file_desc, &f->file);
	free(f->path);
	free(f);
	return NULL;
}

int fence_open(struct manager *m, struct mo_error *err) {
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	struct fence *f = mo_alloc(sizeof(*f));
	m->fence = f;
	f->path = mo_path(m->config->state_dir, "fence.json");
	mo_desc_init(&fence_file_desc, &f->file);
	f->file.epoch = 0;
	int r = mo_read_file(f->path, FENCE_BYTES_MAX, &b);
	if (r == -ENOENT)
		return 0;
	_cleanup_(mo_error_done) struct mo_error e = {0};
	if (r == 0)
		r = wire_decode(&fence_file_desc, b.data ? b.data : "", b.len, false, &f->file, &e);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s; it protects against stale commands: restore it, or remove it when no step of this node can still be ordered by an old controller", f->path, mo_error_text(&e, r));
	struct steps_event epoch = {.type = AE_FENCE, .epoch = f->file.epoch};
	manager_queue(m, &epoch);
	for (size_t i = 0; i < f->file.n_jobs; i++) {
		struct steps_event job = {.type = AE_FENCE, .epoch = f->file.epoch, .job = f->file.jobs[i].job, .attempt = f->file.jobs[i].attempt};
		manager_queue(m, &job);
	}
	return 0;
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

int fence_save(struct fence *f, int64_t job, int64_t attempt, int64_t epoch) {
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	f->unsynced |= epoch > f->file.epoch;
	f->file.epoch = MO_MAX(f->file.epoch, epoch);
	f->unsaved |= f->unsynced;
	f->unsaved |= raise_job(f, job, attempt);
	if (!f->unsaved)
		return 0;
	wire_encode(&fence_file_desc, &f->file, &b);
	int r = mo_write_file(f->path, b.data, b.len, 0600, f->unsynced);
	if (r == 0)
		f->unsaved = f->unsynced = false;
	return r;
}
