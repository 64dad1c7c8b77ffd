/* Files and descriptors: whole reads, atomic writes, locks, look-up of data files and helper
 * programs. Every path that fails leaves no descriptor and no temporary file. */
#include "lib/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/assert.h"
#include "lib/base/clock.h"

#define RM_DEPTH_MAX 200 /* one descriptor is open per level */

int mo_write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	mo_assert(data || n == 0);
	while (n > 0) {
		ssize_t r = mo_write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int mo_read_fd(int fd, size_t max, struct mo_buf *b)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	char piece[16384];
	ssize_t r;

	mo_assert(max > 0);
	for (;;) {
		r = mo_read(fd, piece, sizeof(piece));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		if ((size_t)r > max - got.len)
			return -EFBIG;
		mo_buf_add(&got, piece, (size_t)r);
	}
	mo_buf_add(b, got.data, got.len);
	return 0;
}

int mo_read_file_at(int dirfd, const char *path, size_t max, struct mo_buf *b)
{
	_cleanup_(mo_closep) int fd = mo_open_at(dirfd, path, O_RDONLY, 0);

	return fd < 0 ? -errno : mo_read_fd(fd, max, b);
}

int mo_read_file(const char *path, size_t max, struct mo_buf *b)
{
	return mo_read_file_at(AT_FDCWD, path, max, b);
}

int mo_sync_dir(const char *path)
{
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);

	return fd < 0 || mo_sync(fd, false) < 0 ? -errno : 0;
}

static int sync_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(mo_freep) char *dir = slash == path ? mo_strdup("/")
					: slash       ? mo_strndup(path, (size_t)(slash - path))
						      : mo_strdup(".");

	return mo_sync_dir(dir);
}

static int write_tmp(int fd, const void *data, size_t n, mode_t mode, bool sync)
{
	int r = mo_write_all(fd, data, n);

	if (r < 0)
		return r;
	if (mo_chmod_fd(fd, mode) < 0 || (sync && mo_sync(fd, false) < 0))
		return -errno;
	return 0;
}

int mo_write_file(const char *path, const void *data, size_t n, mode_t mode, bool sync)
{
	_cleanup_(mo_freep) char *tmp = mo_printf("%s.XXXXXX", path);
	_cleanup_(mo_closep) int fd = mo_open_temp(tmp);
	int r;

	mo_assert(path && (data || n == 0) && !(mode & ~07777u));
	if (fd < 0)
		return -errno;
	r = write_tmp(fd, data, n, mode, sync);
	if (r == 0 && mo_rename(tmp, path) < 0)
		r = -errno;
	if (r < 0) {
		mo_remove_at(AT_FDCWD, tmp, 0);
		return r;
	}
	return sync ? sync_parent(path) : 0;
}

/* One that was there may have been made by somebody who died before he synced it; whose parent may
 * not be opened, that is not ours to say. */
static int make_dir(const char *path, mode_t mode, bool sync)
{
	bool made = mo_mkdir(path, mode) == 0;
	int r = made || errno == EEXIST ? 0 : -errno;

	if (r == 0 && sync)
		r = sync_parent(path);
	return made || r != -EACCES ? r : 0;
}

int mo_mkdir_p(const char *path, mode_t mode, bool sync)
{
	_cleanup_(mo_freep) char *p = mo_strdup(path);
	struct stat st;

	for (char *s = p + 1; *p && *s; s++) {
		if (*s != '/')
			continue;
		*s = 0;
		int r = make_dir(p, mode, sync);
		if (r < 0)
			return r;
		*s = '/';
	}
	int r = make_dir(p, mode, sync);
	if (r < 0)
		return r;
	return mo_stat(p, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* Recursion is needed: the tree is. Entries that vanish meanwhile are fine. */
static int rm_below(int parent, const char *name, int depth)
{
	_cleanup_(mo_dir_freep) struct mo_dir *dir = NULL;
	const char *entry;
	int r;

	if (mo_remove_at(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (depth > RM_DEPTH_MAX)
		return -ELOOP;
	dir = mo_dir_open(parent, name, O_NOFOLLOW);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = mo_dir_next(dir))) {
		r = rm_below(mo_dir_fd(dir), entry, depth + 1);
		if (r < 0)
			return r;
	}
	if (errno)
		return -errno;
	return mo_remove_at(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int mo_rm_rf(const char *path)
{
	return rm_below(AT_FDCWD, path, 0);
}

char *mo_path(const char *dir, const char *fmt, ...)
{
	struct mo_buf b = { 0 };
	char *rest = NULL;
	va_list ap;

	va_start(ap, fmt);
	rest = mo_vprintf(fmt, ap);
	va_end(ap);
	mo_buf_str(&b, dir);
	if (b.len == 0 || b.data[b.len - 1] != '/')
		mo_buf_str(&b, "/");
	mo_buf_str(&b, rest);
	free(rest);
	return mo_buf_take(&b);
}

int mo_lock_file(const char *path)
{
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (mo_flock(fd) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int mo_lock_file_soon(const char *path)
{
	int fd = mo_lock_file(path);

	for (int tries = 0; fd == -EWOULDBLOCK && tries < 100; tries++) {
		mo_clock_rest_ms(20);
		fd = mo_lock_file(path);
	}
	return fd;
}

char *mo_boot_id(void)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *given = getenv("MOE_BOOT_ID");
	struct mo_buf id = { 0 };

	if (given && *given)
		return mo_strdup(given);
	if (mo_read_file("/proc/sys/kernel/random/boot_id", 128, &b) < 0)
		return NULL;
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] != '-' && b.data[i] != '\n')
			mo_buf_add(&id, &b.data[i], 1);
	return mo_buf_take(&id);
}

char *mo_random_hex(size_t n_bytes)
{
	_cleanup_(mo_freep) unsigned char *raw = mo_alloc(n_bytes);
	struct mo_buf b = { 0 };

	mo_assert(n_bytes > 0);
	/* ids and secrets must never be guessable: no fallback */
	if (mo_random(raw, n_bytes) < 0)
		abort();
	for (size_t i = 0; i < n_bytes; i++)
		mo_buf_printf(&b, "%02x", raw[i]);
	return mo_buf_take(&b);
}

/* Directory of the running program, "" when unknown: where it was at first, as an upgrade may
 * move it away. */
static const char *program_dir(void)
{
	static char path[PATH_MAX];
	static bool asked;

	if (!asked) {
		ssize_t n = mo_readlink("/proc/self/exe", path, sizeof(path));
		char *slash;

		path[n > 0 && (size_t)n < sizeof(path) ? n : 0] = 0;
		slash = strrchr(path, '/');
		if (slash)
			*slash = 0;
		asked = true;
	}
	return path;
}

/* Whether dir is the source tree or lies below it. */
static bool in_source_tree(const char *dir)
{
	size_t n = strlen(MO_SOURCE_DIR);

	return mo_starts_with(dir, MO_SOURCE_DIR) && (dir[n] == 0 || dir[n] == '/');
}

static const char *shipped_dir(void)
{
	return in_source_tree(program_dir()) ? MO_SOURCE_DIR "/config" : MO_DATADIR;
}

/* Names may come from a recipe: never out of the data directories. */
static bool stays_inside(const char *name)
{
	return *name && *name != '/' && !strstr(name, "..");
}

void mo_data_paths(const char *name, char *ret[static MO_DATA_PATHS])
{
	const char *env = getenv("MOE_DATA_DIR");
	const char *dirs[MO_DATA_PATHS] = { env && *env ? env : NULL, MO_SYSCONFDIR "/moe",
					    shipped_dir() };

	for (size_t i = 0; i < MO_DATA_PATHS; i++)
		ret[i] = dirs[i] && stays_inside(name) ? mo_path(dirs[i], "%s", name) : NULL;
}

char *mo_data_file(const char *name)
{
	char *paths[MO_DATA_PATHS], *found = NULL;

	mo_data_paths(name, paths);
	for (size_t i = 0; i < MO_DATA_PATHS; i++) {
		if (!found && paths[i] && mo_access(paths[i], F_OK) == 0)
			found = TAKE_PTR(paths[i]);
		free(paths[i]);
	}
	return found;
}

char *mo_data_shipped(const char *name)
{
	_cleanup_(mo_freep) char *path =
		stays_inside(name) ? mo_path(shipped_dir(), "%s", name) : NULL;

	return path && mo_access(path, F_OK) == 0 ? TAKE_PTR(path) : NULL;
}

static bool in_list(char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

void mo_data_names(const char *dir, char ***ret, size_t *n_ret)
{
	char *paths[MO_DATA_PATHS];

	mo_data_paths(dir, paths);
	for (size_t i = 0; i < MO_DATA_PATHS; i++) {
		_cleanup_(mo_dir_freep) struct mo_dir *d =
			paths[i] ? mo_dir_open(AT_FDCWD, paths[i], 0) : NULL;

		for (const char *entry; (entry = mo_dir_next(d));) {
			size_t len = strlen(entry),
			       stem = len > 5 && strcmp(entry + len - 5, ".yaml") == 0 ? len - 5
										       : 0;
			_cleanup_(mo_freep) char *name =
				stem && entry[0] != '.' ? mo_strndup(entry, stem) : NULL;

			if (name && !in_list(*ret, *n_ret, name))
				*MO_GROW(*ret, *n_ret) = TAKE_PTR(name);
		}
		free(paths[i]);
	}
}

char *mo_libexec(const char *program)
{
	_cleanup_(mo_freep) char *dir = mo_strdup(program_dir());
	_cleanup_(mo_freep) char *installed = mo_path(MO_LIBEXECDIR, "%s", program);
	char *slash;

	while (dir) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s", program);

		if (mo_access(path, X_OK) == 0)
			return TAKE_PTR(path);
		/* a test program lies deeper in the build directory than the programs */
		slash = strrchr(dir, '/');
		if (!slash || !in_source_tree(dir))
			break;
		*slash = 0;
	}
	return mo_access(installed, X_OK) == 0 ? TAKE_PTR(installed) : NULL;
}
