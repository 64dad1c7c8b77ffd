/* SQLite on the disk of this world: what its VFS for Unix asks of the system, asked of disk.c. One
 * process at a time has a database (its directory's lock), so that locks are none; its log is read
 * by nobody else, so that it has no shared memory. */
#include "tests/unit/seams/world.h"

#include <errno.h>
#include <sqlite3.h>

#include "lib/base/chance.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

struct vfs_file {
	sqlite3_file base;
	int fd;
	char *path;
	bool made; /* its name is synced with its first bytes */
};

static int of_change(int at_io)
{
	return errno == ENOSPC || errno == EDQUOT ? SQLITE_FULL : at_io;
}

/* As unixOpenDirectory() and a sync of it. */
static int sync_directory(const char *path)
{
	_cleanup_(mo_freep) char *dir = mo_strndup(path, (size_t)(strrchr(path, '/') - path));
	int fd = mo_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : mo_sync(fd, false);

	if (fd >= 0)
		mo_close(fd);
	return r < 0 ? SQLITE_IOERR_DIR_FSYNC : SQLITE_OK;
}

static int close_it(sqlite3_file *f)
{
	struct vfs_file *file = (struct vfs_file *)f;

	mo_close(file->fd);
	free(file->path);
	return SQLITE_OK;
}

static int read_it(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	ssize_t got = mo_read_at(((struct vfs_file *)f)->fd, to, (size_t)n, at);

	if (got < 0)
		return SQLITE_IOERR_READ;
	memset((char *)to + got, 0, (size_t)(n - got));
	return got < n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int write_it(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	for (int done = 0; done < n;) {
		ssize_t r = mo_write_at(((struct vfs_file *)f)->fd, (const char *)from + done,
					(size_t)(n - done), at + done);

		if (r < 0)
			return of_change(SQLITE_IOERR_WRITE);
		done += (int)r;
	}
	return SQLITE_OK;
}

static int truncate_it(sqlite3_file *f, sqlite3_int64 bytes)
{
	return mo_truncate(((struct vfs_file *)f)->fd, bytes) < 0 ? of_change(SQLITE_IOERR_TRUNCATE)
								  : SQLITE_OK;
}

static int sync_it(sqlite3_file *f, int flags)
{
	struct vfs_file *file = (struct vfs_file *)f;

	if (mo_sync(file->fd, flags & SQLITE_SYNC_DATAONLY) < 0)
		return SQLITE_IOERR_FSYNC;
	if (!file->made)
		return SQLITE_OK;
	file->made = false;
	return sync_directory(file->path);
}

static int size_of_it(sqlite3_file *f, sqlite3_int64 *ret)
{
	struct stat st;

	mo_stat_fd(((struct vfs_file *)f)->fd, &st);
	*ret = st.st_size;
	return SQLITE_OK;
}

static int lock_it(sqlite3_file *f, int level)
{
	return SQLITE_OK;
}

static int is_reserved(sqlite3_file *f, int *ret)
{
	*ret = 0;
	return SQLITE_OK;
}

static int control(sqlite3_file *f, int what, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *f)
{
	return 4096;
}

/* As of every disk by SQLite's VFS for Unix: what is written harms nothing beside it. */
static int characteristics(sqlite3_file *f)
{
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = close_it,
	.xRead = read_it,
	.xWrite = write_it,
	.xTruncate = truncate_it,
	.xSync = sync_it,
	.xFileSize = size_of_it,
	.xLock = lock_it,
	.xUnlock = lock_it,
	.xCheckReservedLock = is_reserved,
	.xFileControl = control,
	.xSectorSize = sector_size,
	.xDeviceCharacteristics = characteristics,
};

static int open_it(sqlite3_vfs *v, const char *path, sqlite3_file *f, int flags, int *ret_flags)
{
	struct vfs_file *file = (struct vfs_file *)f;
	int how = flags & SQLITE_OPEN_READONLY ? O_RDONLY : O_RDWR;
	bool was;

	file->base.pMethods = NULL;
	assert_non_null(path); /* no file without a name is asked for */
	was = seam_exists(path);
	if (flags & SQLITE_OPEN_CREATE)
		how |= O_CREAT;
	file->fd = mo_open_at(AT_FDCWD, path, how, 0644);
	if (file->fd < 0)
		return SQLITE_CANTOPEN;
	file->path = mo_strdup(path);
	file->made = !was && flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL);
	file->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int delete_it(sqlite3_vfs *v, const char *path, int and_sync)
{
	if (mo_remove_at(AT_FDCWD, path, 0) < 0)
		return errno == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
	return and_sync ? sync_directory(path) : SQLITE_OK;
}

/* An empty file is none, as in SQLite's VFS for Unix. */
static int is_there(sqlite3_vfs *v, const char *path, int how, int *ret)
{
	struct stat st;

	*ret = mo_stat(path, &st) >= 0 && (how != SQLITE_ACCESS_EXISTS || st.st_size > 0);
	return SQLITE_OK;
}

static int full_name(sqlite3_vfs *v, const char *path, int n, char *ret)
{
	return snprintf(ret, (size_t)n, "%s", path) < n ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int chance(sqlite3_vfs *v, int n, char *ret)
{
	mo_random(ret, (size_t)n);
	return n;
}

static int rest(sqlite3_vfs *v, int us)
{
	mo_clock_rest_ms(us / 1000);
	return us;
}

static int last_error(sqlite3_vfs *v, int n, char *text)
{
	return errno;
}

/* In days since noon, 24 November 4714 BC. */
static int now(sqlite3_vfs *v, double *ret)
{
	*ret = 2440587.5 + (double)mo_clock_wall_us() / 86400e6;
	return SQLITE_OK;
}

void seam_vfs(void)
{
	static sqlite3_vfs vfs = {
		.iVersion = 1,
		.szOsFile = sizeof(struct vfs_file),
		.mxPathname = 512,
		.zName = "seam",
		.xOpen = open_it,
		.xDelete = delete_it,
		.xAccess = is_there,
		.xFullPathname = full_name,
		.xRandomness = chance,
		.xSleep = rest,
		.xCurrentTime = now,
		.xGetLastError = last_error,
	};

	sqlite3_vfs_register(&vfs, 1);
}
