/* Checksums and manifests of one entry. Files are read at a bounded rate and not from this
 * node's cache, as far as the kernel lets go of it: what counts is what lies in storage. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/base/clock.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"

#define PIECE (4 << 20)

/* ---- the rate ---- */

struct rate {
	int64_t bandwidth, began_us, bytes;
};

static void rate_wait(struct rate *r, int64_t bytes)
{
	r->bytes += bytes;
	int64_t due = r->bandwidth > 0 ? (int64_t)((double)r->bytes * 1e6 / (double)r->bandwidth)
				       : 0,
		wait = due - ((mo_clock_mono_ns() / 1000) - r->began_us);
	if (wait > 1000)
		/* a process of its own that has nothing else to do */
		poll(NULL, 0, (int)MO_MIN(wait / 1000, 60000));
}

/* ---- checksums ---- */

/* own: records whose checksums are compared on the way. NULL, or what is wrong; caller frees. */
static char *crc_of(int fd, char *piece, struct rate *rate, struct file_records *own,
		    struct ckpt_file *f)
{
	struct stat st;
	uint32_t crc = 0;
	int64_t at = 0;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	/* what was appended since is not read: it may grow as fast as that */
	for (ssize_t n; at <= f->bytes && (n = pread(fd, piece, PIECE, at)) != 0; at += n) {
		if (n < 0)
			return mo_printf("it cannot be read from byte %lld on: %s", (long long)at,
					 strerror(errno));
		crc = mo_crc32c(crc, piece, (size_t)n);
		char *damage = file_records_feed(own, piece, (size_t)n, at);
		if (damage)
			return damage;
		posix_fadvise(fd, at, n, POSIX_FADV_DONTNEED);
		rate_wait(rate, n);
	}
	if (fstat(fd, &st) < 0)
		return mo_strdup(strerror(errno));
	f->crc = crc;
	return at == f->bytes && st.st_size == f->bytes &&
			       st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec == f->mtime_ns
		       ? NULL
		       : mo_strdup("it changed while it was read");
}

/* NULL, or what is wrong; caller frees. */
static char *read_file(const struct checksums *c, int entry, char *piece, struct rate *rate,
		       struct ckpt_file *f)
{
	struct file_records own = { .n = 0 };
	_cleanup_(mo_closep) int fd = file_open(entry, f->name);
	char *damage;

	if (fd < 0)
		return mo_strdup(strerror(-fd));
	damage = c->own ? file_records_find(fd, f->bytes, &own) : NULL;
	if (!damage)
		damage = crc_of(fd, piece, rate, &own, f);
	file_records_done(&own);
	return damage;
}

static int open_entry(const struct checksums *c)
{
	return openat(c->dir_fd, c->entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

char *checksums_make(const struct checksums *c, struct ckpt_file *files, size_t n)
{
	_cleanup_(mo_freep) char *piece = mo_alloc(PIECE);
	struct rate rate = { .bandwidth = c->bandwidth, .began_us = (mo_clock_mono_ns() / 1000) };
	_cleanup_(mo_closep) int entry = open_entry(c);
	char *reason = NULL;

	if (entry < 0)
		return mo_printf("it cannot be opened: %s", strerror(errno));
	for (size_t i = 0; i < n && !reason; i++) {
		if (manifest_part(files[i].name, c->parts) != c->part)
			continue;
		_cleanup_(mo_freep) char *damage = read_file(c, entry, piece, &rate, &files[i]);
		if (damage)
			reason = mo_printf("%s: %s", files[i].name, damage);
	}
	return reason;
}

size_t checksums_own(const struct checksums *c, const struct ckpt_file *files, size_t n)
{
	_cleanup_(mo_closep) int entry = open_entry(c);
	size_t n_own = 0;

	for (size_t i = 0; entry >= 0 && i < n; i++) {
		struct file_records own;
		_cleanup_(mo_closep) int fd = file_open(entry, files[i].name);

		if (fd < 0)
			continue;
		free(file_records_find(fd, files[i].bytes, &own));
		n_own += own.all;
		file_records_done(&own);
	}
	return n_own;
}

/* ---- manifests ---- */

static int manifests_open(int dir_fd, bool make)
{
	if (make)
		mkdirat(dir_fd, MANIFEST_DIR, 0777);
	int fd = openat(dir_fd, MANIFEST_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int save(int dir_fd, const char *name, const struct ckpt_file *files, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	_cleanup_(mo_freep) char *tag = mo_random_hex(8),
				 *tmp = mo_printf(".%s.tmp", tag ? tag : "x");
	int at = manifests_open(dir_fd, true);

	if (at < 0)
		return at;
	manifest_write(files, n, &text);
	int fd = openat(at, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644),
	    r = fd < 0 ? -errno : mo_write_all(fd, text.data, text.len);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	mo_close(fd);
	if (r == 0 && renameat(at, tmp, at, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(at, tmp, 0);
	mo_close(at);
	return r;
}

static int load(int dir_fd, const char *name, struct ckpt_file **ret, size_t *n_ret)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int at = manifests_open(dir_fd, false), fd = at < 0 ? at : file_open(at, name);
	struct stat st;
	int r = fd;

	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_size > MANIFEST_BYTES_MAX))
		r = -EINVAL;
	if (r >= 0) {
		_cleanup_(mo_freep) char *data = mo_alloc((size_t)st.st_size + 1);
		r = pread(fd, data, (size_t)st.st_size, 0) == st.st_size
			    ? manifest_read(data, (size_t)st.st_size, ret, n_ret)
			    : -EINVAL;
	}
	mo_close(fd);
	mo_close(at);
	return r;
}

void manifest_save(int dir_fd, const char *entry, const struct ckpt_file *files, size_t n)
{
	/* without it the digest still tells that something changed, only not what */
	save(dir_fd, entry, files, n);
}

int manifest_load(int dir_fd, const char *entry, struct ckpt_file **ret, size_t *n_ret)
{
	return load(dir_fd, entry, ret, n_ret);
}

static char *part_name(const struct checksums *c, int64_t part)
{
	return mo_printf(".%s.%lld-%lld", c->entry, (long long)part, (long long)c->parts);
}

int checksums_save_part(const struct checksums *c, const struct ckpt_file *files, size_t n)
{
	_cleanup_(mo_freep) char *name = part_name(c, c->part);

	return save(c->dir_fd, name, files, n);
}

char *checksums_join(const struct checksums *c, struct ckpt_file *files, size_t n)
{
	char *reason = NULL;

	for (int64_t part = 0; part < c->parts && !reason; part++) {
		_cleanup_(mo_freep) char *name = part_name(c, part);
		struct ckpt_file *was = NULL;
		size_t n_was = 0;
		if (load(c->dir_fd, name, &was, &n_was) < 0)
			return mo_printf("the checksums of part %lld of %lld are gone",
					 (long long)part + 1, (long long)c->parts);
		reason = manifest_difference(was, n_was, files, n, false);
		for (size_t i = 0; i < n && !reason; i++)
			if (manifest_part(files[i].name, c->parts) == part)
				files[i].crc = was[i].crc;
		ckpt_files_done(was, n_was);
	}
	for (size_t i = 0; i < n && !reason; i++)
		if (files[i].crc == MO_NONE)
			reason = mo_printf("%s: no part has its checksum", files[i].name);
	int at = manifests_open(c->dir_fd, false);
	for (int64_t part = 0; part < c->parts && at >= 0; part++) {
		_cleanup_(mo_freep) char *name = part_name(c, part);
		unlinkat(at, name, 0);
	}
	mo_close(at);
	return reason;
}

void manifest_remove(int dir_fd, const char *entry)
{
	int at = manifests_open(dir_fd, false);

	if (at >= 0)
		unlinkat(at, entry, 0);
	mo_close(at);
}
