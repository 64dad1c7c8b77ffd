/* See sample_files.h. The names in the directory are read at the start (sample_dir.c), what is in a
 * file when it is first asked for: then its heads are kept (176 bytes for 64 samples), of jobs that
 * have ended until the next sweep. */
#include "daemon/sample_files.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/update/samples.h"
#include "daemon/sample_dir.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"

static void tell(struct sample_files *s, const char *path, const char *why)
{
	if (!s->reported)
		mo_log(MO_WARNING, NULL, NULL,
		       "%s: %s: samples of iterations are not written; the newest %d of each job "
		       "are in the state",
		       path, why, MO_SAMPLES_MAX / 2);
	s->reported = true;
}

static bool read_body(int fd, const struct sample_block *b, struct sample *ret)
{
	uint8_t body[BLOCK_BODY_BYTES_MAX];

	return mo_read_at(fd, body, (size_t)b->bytes, b->at + BLOCK_HEAD_BYTES) == b->bytes &&
	       sample_block_read(b, body, (size_t)b->bytes, ret) == 0;
}

/* How far the file is in order: bytes. Its heads, and the bodies at its end, of which a loss of
 * power may have left less. */
static int64_t read_heads(int fd, struct sample_file *f)
{
	struct sample read[BLOCK_SAMPLES];
	uint8_t head[BLOCK_HEAD_BYTES];
	struct sample_block b;
	int64_t at = 0;

	while (mo_read_at(fd, head, sizeof(head), at) == (ssize_t)sizeof(head) &&
	       sample_block_head(head, sizeof(head), &b) == 0 && b.attempt == f->attempt &&
	       (!f->n_blocks || b.first > f->blocks[f->n_blocks - 1].last)) {
		b.at = at;
		at += BLOCK_HEAD_BYTES + b.bytes;
		*MO_GROW(f->blocks, f->n_blocks) = b;
	}
	while (f->n_blocks && !read_body(fd, &f->blocks[f->n_blocks - 1], read))
		at = f->blocks[--f->n_blocks].at;
	return at;
}

/* Its heads are known afterwards; what is behind the last that is in order is cut off. */
static void know(struct sample_files *s, int64_t job, struct sample_file *f)
{
	_cleanup_(mo_freep) char *path = sample_dir_path(s, job, f->attempt);
	_cleanup_(mo_closep) int fd = -1;
	int64_t good;

	if (f->known)
		return;
	f->known = true;
	fd = mo_open_at(AT_FDCWD, path, O_RDWR, 0);
	good = fd < 0 ? 0 : read_heads(fd, f);
	if (fd < 0 || good == f->bytes)
		return;
	mo_log(MO_WARNING, NULL, NULL,
	       "%s: %lld bytes behind byte %lld are no samples (a loss of power?): they are cut "
	       "off; what the state still has of them is written again",
	       path, (long long)(f->bytes - good), (long long)good);
	if (mo_truncate(fd, good) < 0)
		return;
	s->bytes += good - f->bytes;
	f->bytes = good;
}

static bool is_behind(const struct sample *s, int64_t attempt, int64_t iteration)
{
	return s->attempt > attempt || (s->attempt == attempt && s->iteration > iteration);
}

/* Place of the first sample of the state behind that one. */
static size_t first_behind(const struct job_progress *p, int64_t attempt, int64_t iteration)
{
	size_t low = 0, high = p->n_samples;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_behind(&p->samples[middle], attempt, iteration))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* At its end; what a write that failed left there is written over. */
static int append(const char *path, int64_t at, const struct mo_buf *b)
{
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
	size_t done = 0;

	while (fd >= 0 && done < b->len) {
		ssize_t n = mo_write_at(fd, b->data + done, b->len - done, at + (int64_t)done);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		done += (size_t)n;
	}
	return fd < 0 ? fd : 0;
}

/* n samples of one attempt, as one block. False: they stay in the state. */
static bool write_block(struct sample_files *s, const struct job *j, const struct sample *samples,
			size_t n)
{
	_cleanup_(mo_freep) char *path = sample_dir_path(s, j->id, samples[0].attempt);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct sample_block block;

	sample_block_write(samples, n, &b, &block);
	if (!sample_dir_room(s, (int64_t)b.len)) {
		tell(s, path, "samples_max is reached, and there is no older file");
		return false;
	}
	struct sample_file *f = sample_dir_file(s, j->id, samples[0].attempt);
	know(s, j->id, f);
	int r = append(path, f->bytes, &b);
	if (r == -ENOENT && mo_mkdir_p(s->dir, 0700, false) >= 0)
		r = append(path, f->bytes, &b);
	if (r < 0) {
		tell(s, path, strerror(-r));
		return false;
	}
	block.at = f->bytes;
	*MO_GROW(f->blocks, f->n_blocks) = block;
	f->bytes += (int64_t)b.len;
	s->bytes += (int64_t)b.len;
	f->written_us = mo_clock_wall_us();
	s->reported = false;
	return true;
}

/* Samples of the same attempt from `from` on, before `end`: so many that a block is due, or 0. */
static size_t due(const struct job_progress *p, size_t from, size_t end, bool over)
{
	size_t n = 0;

	while (n < BLOCK_SAMPLES && from + n < end &&
	       p->samples[from + n].attempt == p->samples[from].attempt)
		n++;
	return n == BLOCK_SAMPLES || from + n < end || over ? n : 0;
}

void sample_files_take(struct manager *m, int64_t job)
{
	struct sample_files *s = m->sample_files;
	const struct job *j = job_find(manager_state(m), job);

	if (sample_dir_sweep_due(s))
		sample_dir_sweep(s);
	if (!j || !j->progress.n_samples || !m->options->samples_max || m->store_full)
		return;
	const struct job_progress *p = &j->progress;
	bool over = job_state_final(j->state);
	struct run_files *f = sample_dir_run(s, job);
	struct sample_file *last = f && f->n ? &f->files[f->n - 1] : NULL;
	if (last)
		know(s, job, last);
	size_t end = over ? p->n_samples : p->n_samples - MO_MIN(p->n_samples, SAMPLES_LATE_MAX);
	size_t from =
		first_behind(p, last ? last->attempt : 0,
			     last && last->n_blocks ? last->blocks[last->n_blocks - 1].last : -1);
	for (size_t n; from < end && (n = due(p, from, end, over)); from += n)
		if (!write_block(s, j, &p->samples[from], n))
			return;
}

/* From the state, where it has them whole. */
static const struct sample *held(const struct job_progress *p, const struct sample_block *b)
{
	size_t from = first_behind(p, b->attempt, b->first - 1);

	return first_behind(p, b->attempt, b->last) - from == (size_t)b->n ? &p->samples[from]
									   : NULL;
}

/* False: that is enough. */
static bool give(const struct sample *s, int64_t n, const struct sample_reader *r)
{
	for (int64_t i = 0; i < n; i++)
		if (!r->sample(r->arg, &s[i]))
			return false;
	return true;
}

static bool read_block(struct sample_file *f, const char *path, int fd,
		       const struct sample_block *b, const struct sample_reader *r)
{
	struct sample read[BLOCK_SAMPLES];

	if (read_body(fd, b, read))
		return give(read, b->n, r);
	if (!f->reported)
		mo_log(MO_WARNING, NULL, NULL,
		       "%s: iterations %lld to %lld cannot be read and are left out", path,
		       (long long)b->first, (long long)b->last);
	f->reported = true;
	return true;
}

static bool read_file(struct sample_files *s, const struct job *j, struct sample_file *f,
		      const struct sample_reader *r)
{
	_cleanup_(mo_freep) char *path = sample_dir_path(s, j->id, f->attempt);
	_cleanup_(mo_closep) int fd = -1;

	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct sample_block *b = &f->blocks[i];
		const struct sample *have;

		if (!r->block(r->arg, b))
			continue;
		have = held(&j->progress, b);
		if (fd < 0 && !have)
			fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
		if (!(have ? give(have, b->n, r) : read_block(f, path, fd, b, r)))
			return false;
	}
	return true;
}

void sample_files_read(struct manager *m, const struct job *j, const struct sample_reader *r)
{
	const struct run_files *runs = sample_dir_run(m->sample_files, j->id);
	const struct job_progress *p = &j->progress;
	size_t at = 0, i = 0, n = runs ? runs->n : 0;

	while (at < p->n_samples || i < n) {
		struct sample_file *f = i < n ? &runs->files[i] : NULL;
		bool older = at < p->n_samples && (!f || p->samples[at].attempt < f->attempt);

		if (!older) {
			know(m->sample_files, j->id, f);
			if (!read_file(m->sample_files, j, f, r))
				return;
			i++;
		}
		int64_t attempt = older ? p->samples[at].attempt : f->attempt;
		if (!older && f->n_blocks)
			at = MO_MAX(at, first_behind(p, attempt, f->blocks[f->n_blocks - 1].last));
		for (; at < p->n_samples && p->samples[at].attempt == attempt; at++)
			if (!r->sample(r->arg, &p->samples[at]))
				return;
	}
}
