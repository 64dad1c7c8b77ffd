/* See targets.h. */
#include "agent/namespace/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "lib/base/assert.h"
#include "lib/base/file.h"

#define OWN_MAX 4

static dev_t own[OWN_MAX];
static size_t n_own;

void target_own(const char *path)
{
	struct stat st;

	if (mo_stat(path, &st) < 0)
		report_failure(errno, "look at %s in the image", path);
	mo_assert(n_own < OWN_MAX);
	own[n_own++] = st.st_dev;
}

bool target_is_own(const struct stat *st)
{
	for (size_t i = 0; i < n_own; i++)
		if (own[i] == st->st_dev)
			return true;
	return false;
}

static bool is_own(int dir)
{
	struct stat st;

	return mo_stat_fd(dir, &st) == 0 && target_is_own(&st);
}

/* The name in the directory, made. */
static void make(int dir, const char *name, bool directory, const char *path)
{
	if (!is_own(dir))
		report_failure(ENOENT,
			       "enter %s: %s is missing there, and what comes from the node is not "
			       "changed; make it on the node",
			       path, name);
	_cleanup_(mo_closep) int file = -1;

	if (directory && mkdirat(dir, name, 0755) == 0)
		return;
	if (!directory)
		file = mo_open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (file < 0)
		report_failure(errno, "make %s in the image, for %s", name, path);
}

/* The directory that the path lies in; *ret_name: the last part, within path. */
static int open_parent(char *path, const char *whole, const char **ret_name)
{
	_cleanup_(mo_closep) int dir = kernel_open_in(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
	char *part = path + 1, *slash;

	if (dir < 0)
		report_failure(-dir, "open the root of the image");
	for (; (slash = strchr(part, '/')); part = slash + 1) {
		*slash = '\0';
		int next = kernel_open_in(AT_FDCWD, path, O_PATH | O_DIRECTORY);

		if (next == -ENOENT) {
			make(dir, part, true, whole);
			next = kernel_open_in(AT_FDCWD, path, O_PATH | O_DIRECTORY);
		}
		if (next < 0)
			report_failure(-next, "enter %s: %s is no directory in the image", whole,
				       path);
		mo_close(dir);
		dir = next;
		*slash = '/';
	}
	*ret_name = part;
	return TAKE_FD(dir);
}

static void check(int fd, const char *path, bool directory)
{
	struct stat st;

	if (mo_stat_fd(fd, &st) < 0)
		report_failure(errno, "look at %s in the image", path);
	if (S_ISLNK(st.st_mode))
		report_failure(ELOOP, "enter %s: it is a symbolic link in the image", path);
	if (directory && !S_ISDIR(st.st_mode))
		report_failure(ENOTDIR, "enter %s: it is no directory in the image", path);
	if (!directory && S_ISDIR(st.st_mode))
		report_failure(EISDIR,
			       "enter %s: it is a directory in the image and a file on "
			       "the node",
			       path);
}

int target_open(const char *path, bool directory)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	const char *name;

	if (path[0] != '/' || clean[1] == '\0')
		report_failure(EINVAL, "enter %s: it is no absolute path below /", path);
	_cleanup_(mo_closep) int dir = open_parent(clean, path, &name);
	int fd = mo_open_at(dir, name, O_PATH | O_NOFOLLOW, 0);

	if (fd == -ENOENT) {
		make(dir, name, directory, path);
		fd = mo_open_at(dir, name, O_PATH | O_NOFOLLOW, 0);
	}
	if (fd < 0)
		report_failure(-fd, "enter %s", path);
	check(fd, path, directory);
	return fd;
}
