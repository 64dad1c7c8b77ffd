/* See sample_dir.h. */
#include "daemon/sample_dir.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/aside.h"
#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define SWEEP_US (3600 * 1000000LL)
/* Beyond the limit so much more than must be goes, so that it is not done for each block. */
#define DROP_PART 16

char *sample_dir_path(const struct sample_files *s, int64_t job, int64_t attempt)
{
	return mo_path(s->dir, "j-%lld.a%lld", (long long)job, (long long)attempt);
}

/* Both at least 1. False: it is another file. */
static bool read_name(const char *name, int64_t *job, int64_t *attempt)
{
	const char *dot = mo_starts_with(name, "j-") ? strstr(name, ".a") : NULL;
	_cleanup_(mo_freep) char *id = dot ? mo_strndup(name + 2, (size_t)(dot - name - 2)) : NULL;

	return id && mo_parse_i64(id, 1, INT64_MAX, job) == 0 &&
	       mo_parse_i64(dot + 2, 1, INT64_MAX, attempt) == 0;
}

struct run_files *sample_dir_run(struct sample_files *s, int64_t job)
{
	struct run_files *f = NULL;

	HASH_FIND(hh, s->runs, &job, sizeof(job), f);
	return f;
}

struct sample_file *sample_dir_file(struct sample_files *s, int64_t job, int64_t attempt)
{
	struct run_files *f = sample_dir_run(s, job);
	size_t at;

	if (!f) {
		f = mo_alloc(sizeof(*f));
		f->job = job;
		HASH_ADD(hh, s->runs, job, sizeof(f->job), f);
	}
	for (at = f->n; at > 0 && f->files[at - 1].attempt > attempt; at--)
		;
	if (at > 0 && f->files[at - 1].attempt == attempt)
		return &f->files[at - 1];
	MO_GROW(f->files, f->n);
	memmove(&f->files[at + 1], &f->files[at], (f->n - 1 - at) * sizeof(*f->files));
	f->files[at] = (struct sample_file){ .attempt = attempt };
	return &f->files[at];
}

static void forget_heads(struct sample_file *f)
{
	free(f->blocks);
	f->blocks = NULL;
	f->n_blocks = 0;
	f->known = false;
}

static void run_free(struct sample_files *s, struct run_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->files[i].blocks);
	HASH_DEL(s->runs, f);
	free(f->files);
	free(f);
}

static void drop(struct sample_files *s, struct run_files *f, size_t at)
{
	_cleanup_(mo_freep) char *path = sample_dir_path(s, f->job, f->files[at].attempt);

	mo_remove_at(AT_FDCWD, path, 0);
	s->bytes -= f->files[at].bytes;
	mo_assert(s->bytes >= 0);
	free(f->files[at].blocks);
	f->n--;
	memmove(&f->files[at], &f->files[at + 1], (f->n - at) * sizeof(*f->files));
}

/* Files of jobs in quarantine wait for them. */
void sample_dir_sweep(struct sample_files *s)
{
	struct run_files *f, *tmp;

	s->swept_us = mo_clock_boot_us();
	HASH_ITER(hh, s->runs, f, tmp) {
		const struct job *j = job_find(manager_state(s->owner), f->job);

		while (!j && f->n && !core_is_out(s->owner->core, f->job))
			drop(s, f, f->n - 1);
		for (size_t i = 0; i < f->n && (!j || job_state_final(j->state)); i++)
			forget_heads(&f->files[i]);
		if (!f->n)
			run_free(s, f);
	}
}

bool sample_dir_sweep_due(const struct sample_files *s)
{
	return mo_clock_boot_us() - s->swept_us > SWEEP_US;
}

void sample_files_new(struct manager *m)
{
	struct sample_files *s = m->sample_files = mo_alloc(sizeof(*s));
	const char *name;
	struct stat st;

	s->owner = m;
	s->dir = mo_path(m->options->state_dir, "samples");
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, s->dir, 0);
	while ((name = mo_dir_next(d))) {
		_cleanup_(mo_freep) char *path = mo_path(s->dir, "%s", name);
		int64_t job, attempt;

		if (!read_name(name, &job, &attempt) || mo_stat(path, &st) < 0)
			continue;
		struct sample_file *f = sample_dir_file(s, job, attempt);
		f->bytes = st.st_size;
		f->written_us = (int64_t)st.st_mtime * 1000000;
		s->bytes += f->bytes;
	}
	sample_dir_sweep(s);
}

struct sample_files *sample_files_free(struct sample_files *s)
{
	struct run_files *f, *tmp;

	if (!s)
		return NULL;
	HASH_ITER(hh, s->runs, f, tmp)
		run_free(s, f);
	free(s->dir);
	free(s);
	return NULL;
}

int64_t sample_files_bytes(const struct sample_files *s)
{
	return s->bytes;
}

static void find_oldest(struct sample_files *s, struct run_files **ret, size_t *at)
{
	struct run_files *f, *tmp;

	*ret = NULL;
	HASH_ITER(hh, s->runs, f, tmp) {
		const struct job *j = job_find(manager_state(s->owner), f->job);
		/* the one that is written to stays */
		size_t n = f->n && j && !job_state_final(j->state) ? f->n - 1 : f->n;

		for (size_t i = 0; i < n; i++)
			if (!*ret || f->files[i].written_us < (*ret)->files[*at].written_us) {
				*ret = f;
				*at = i;
			}
	}
}

bool sample_dir_room(struct sample_files *s, int64_t n)
{
	int64_t most = s->owner->options->samples_max;
	struct run_files *f;
	size_t at = 0;

	if (s->bytes + n <= most)
		return true;
	for (most -= most / DROP_PART; s->bytes + n > most; drop(s, f, at)) {
		find_oldest(s, &f, &at);
		if (!f)
			break;
	}
	return s->bytes + n <= s->owner->options->samples_max;
}
