/* See file.h. */
#include "lib/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

static int result(int r)
{
	return r < 0 ? -errno : r;
}

static ssize_t bytes(ssize_t n)
{
	return n < 0 ? -errno : n;
}

int mo_open_at(int at, const char *path, int flags, mode_t mode)
{
	return result(openat(at, path, flags | O_CLOEXEC, mode));
}

int mo_open_temp(char *template)
{
	return result(mkostemp(template, O_CLOEXEC));
}

int mo_close(int fd)
{
	if (fd >= 0)
		close(fd);
	return -1;
}

ssize_t mo_read(int fd, void *ret, size_t n)
{
	return bytes(read(fd, ret, n));
}

ssize_t mo_read_at(int fd, void *ret, size_t n, int64_t at)
{
	return bytes(pread(fd, ret, n, at));
}

ssize_t mo_write(int fd, const void *data, size_t n)
{
	return bytes(write(fd, data, n));
}

ssize_t mo_write_at(int fd, const void *data, size_t n, int64_t at)
{
	return bytes(pwrite(fd, data, n, at));
}

int mo_truncate(int fd, int64_t size)
{
	return result(ftruncate(fd, size));
}

int mo_allocate(int fd, int64_t size)
{
	int e = posix_fallocate(fd, 0, size);

	errno = e;
	return -e;
}

int mo_sync(int fd, bool data_only)
{
	return result(data_only ? fdatasync(fd) : fsync(fd));
}

int mo_flock(int fd)
{
	return result(flock(fd, LOCK_EX | LOCK_NB));
}

bool mo_flock_lacks(int result)
{
	return result == -ENOLCK || result == -EOPNOTSUPP || result == -ENOSYS;
}

int mo_stat(const char *path, struct stat *ret)
{
	return result(stat(path, ret));
}

int mo_stat_fd(int fd, struct stat *ret)
{
	return result(fstat(fd, ret));
}

int mo_access(const char *path, int how)
{
	return result(access(path, how));
}

int mo_space(const char *path, struct statvfs *ret)
{
	return result(statvfs(path, ret));
}

int mo_fs_type(const char *path, int64_t *ret)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return -errno;
	*ret = (int64_t)fs.f_type;
	return 0;
}

int mo_rename(const char *from, const char *to)
{
	return result(rename(from, to));
}

int mo_remove_at(int at, const char *path, int flags)
{
	return result(unlinkat(at, path, flags));
}

int mo_mkdir(const char *path, mode_t mode)
{
	return result(mkdir(path, mode));
}

int mo_chmod(const char *path, mode_t mode)
{
	return result(chmod(path, mode));
}

int mo_chmod_fd(int fd, mode_t mode)
{
	return result(fchmod(fd, mode));
}

int mo_chown(const char *path, uid_t uid, gid_t gid)
{
	return result(lchown(path, uid, gid));
}

int mo_chown_fd(int fd, uid_t uid, gid_t gid)
{
	return result(fchown(fd, uid, gid));
}

ssize_t mo_readlink(const char *path, char *ret, size_t size)
{
	return bytes(readlink(path, ret, size));
}

struct mo_dir {
	DIR *stream;
};

struct mo_dir *mo_dir_open(int at, const char *path, int flags)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		int e = errno;
		mo_close(fd);
		errno = e;
		return NULL;
	}
	struct mo_dir *d = mo_alloc(sizeof(*d));
	d->stream = stream;
	return d;
}

const char *mo_dir_next(struct mo_dir *d)
{
	struct dirent *e = NULL;

	errno = 0;
	while (d && (e = readdir(d->stream)) &&
	       (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0))
		;
	return e ? e->d_name : NULL;
}

int mo_dir_fd(const struct mo_dir *d)
{
	return dirfd(d->stream);
}

struct mo_dir *mo_dir_free(struct mo_dir *d)
{
	if (!d)
		return NULL;
	closedir(d->stream);
	free(d);
	return NULL;
}
