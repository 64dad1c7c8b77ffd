/* See ballast.h. */
#include "lib/store/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/util.h"

#define BALLAST_BYTES (16LL << 20)
/* the log's full length (log_whole.h), the index beside it and small files */
#define BALLAST_START_MIN (8LL << 20)

bool ballast_there(const char *dir)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "ballast");
	struct stat st;

	return mo_stat(path, &st) == 0 && st.st_size >= BALLAST_BYTES;
}

bool ballast_release(const char *dir)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "ballast");

	return mo_remove_at(AT_FDCWD, path, 0) == 0;
}

void ballast_before_start(const char *dir)
{
	struct statvfs v;

	if (mo_space(dir, &v) >= 0 && (int64_t)v.f_bavail * (int64_t)v.f_frsize < BALLAST_START_MIN)
		(void)ballast_release(dir);
}

int ballast_make(const char *dir)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "ballast");
	_cleanup_(mo_closep) int fd = -1;
	struct statvfs v;

	if (ballast_there(dir))
		return 0;
	if (mo_space(dir, &v) < 0)
		return -errno;
	if ((int64_t)v.f_bavail * (int64_t)v.f_frsize < BALLAST_FREE_MIN)
		return -ENOSPC;
	fd = mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return -errno;
	int e = -mo_allocate(fd, BALLAST_BYTES);
	if (e != 0) {
		mo_remove_at(AT_FDCWD, path, 0);
		return -e;
	}
	return 0;
}
