/* Copies of what a script writes over. A copy shares its blocks with the original where the file
 * system can (FICLONE), else it is a full one where there is room. Never a hard link: torch.save
 * truncates the file that is there, and a link would be truncated with it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/ckpt/keep.h"
#include "lib/base/fd.h"

#define PIECE (4 << 20)
/* what a full copy leaves free at least: this part of its size */
#define SPARE_PART 8

static int copy_bytes(int from, int to, int64_t bytes)
{
	_cleanup_(mo_freep) char *piece = mo_alloc(PIECE);
	ssize_t n;

	for (int64_t at = 0; at < bytes; at += n) {
		n = pread(from, piece, (size_t)MO_MIN(bytes - at, (int64_t)PIECE), at);
		if (n <= 0)
			return n < 0 ? -errno : -EBUSY; /* it became shorter */
		int r = mo_write_all(to, piece, (size_t)n);
		if (r < 0)
			return r;
		posix_fadvise(from, at, n, POSIX_FADV_DONTNEED);
	}
	return 0;
}

/* The times of the original say when it was saved. */
static int copy_file(int from_dir, int to_dir, const char *name)
{
	_cleanup_(mo_closep) int from = file_open(from_dir, name);
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return from < 0 ? from : -errno;
	_cleanup_(mo_closep) int to =
		openat(to_dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       st.st_mode & 0777);

	if (to < 0)
		return -errno;
	const struct timespec times[2] = { st.st_atim, st.st_mtim };
	int r = ioctl(to, FICLONE, from) == 0 ? 0 : copy_bytes(from, to, st.st_size);

	return r == 0 && (futimens(to, times) < 0 || fsync(to) < 0) ? -errno : r;
}

static int make_parents(int at, const char *name)
{
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_(mo_freep) char *dir = mo_strndup(name, (size_t)(slash - name));

		if (mkdirat(at, dir, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* Asked with the very file: only the file system knows whether it can share its blocks. */
static bool shares_blocks(int from_dir, int to_dir, const char *name)
{
	_cleanup_(mo_closep) int from = file_open(from_dir, name);
	_cleanup_(mo_closep) int to =
		from < 0 ? -1
			 : openat(to_dir, ".moe-probe",
				  O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool shares = to >= 0 && ioctl(to, FICLONE, from) == 0;

	if (to >= 0)
		unlinkat(to_dir, ".moe-probe", 0);
	return shares;
}

static bool has_room(int from_dir, int to_dir, const struct ckpt_entry *e)
{
	struct statvfs fs;
	int64_t bytes = 0;

	for (size_t i = 0; i < e->n_files; i++)
		bytes += e->files[i].bytes;
	if (e->n_files == 0 || shares_blocks(from_dir, to_dir, e->files[0].name) ||
	    fstatvfs(to_dir, &fs) < 0)
		return true;
	return (int64_t)fs.f_bavail * (int64_t)fs.f_frsize >= bytes + bytes / SPARE_PART;
}

static int copy_files(int from, int to, const struct ckpt_entry *e)
{
	int r = from < 0 || to < 0 ? -errno : has_room(from, to, e) ? 0 : -ENOSPC;

	for (size_t i = 0; i < e->n_files && r == 0; i++) {
		r = make_parents(to, e->files[i].name);
		if (r == 0)
			r = copy_file(from, to, e->files[i].name);
	}
	return r == 0 && fsync(to) < 0 ? -errno : r;
}

int copy_entry(int from_dir, const struct ckpt_entry *e, int to)
{
	int r;

	if (e->directory) {
		if (mkdirat(to, e->name, 0777) < 0)
			return -errno;
		_cleanup_(mo_closep) int from_below =
			openat(from_dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		_cleanup_(mo_closep) int to_below =
			openat(to, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = copy_files(from_below, to_below, e);
	} else {
		r = copy_files(from_dir, to, e);
	}
	if (r < 0)
		tree_remove(to, e->name);
	return r;
}
