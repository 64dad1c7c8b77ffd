/* checkpoint.keep. What goes is renamed first, so that it is no checkpoint any more from one
 * moment on; what a crash left of it is removed by the next order of a job. Only below the
 * directory, on its file system; links are removed, never followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ckpt/scan.h"
#include "lib/base/fd.h"

/* The announced path is the entry or lies in it. */
static bool leads_into(const char *path, const char *dir, const char *name)
{
	_cleanup_(mo_freep) char *entry = mo_path(dir, "%s", name),
				 *clean_name = mo_path_clean(entry), *clean = mo_path_clean(path);
	size_t n = strlen(clean_name);

	return strncmp(clean, clean_name, n) == 0 && (clean[n] == '\0' || clean[n] == '/');
}

/* Other things in the directory may end in the same number: without a path only a directory is
 * meant. */
bool prune_ordered(int dir_fd, const char *dir, const struct command *order,
		   const struct ckpt_entry *e)
{
	struct stat st;

	if (e->damage || order->layout->unnumbered)
		return false;
	for (size_t i = 0; i < order->n_prune; i++) {
		const struct found_checkpoint *f = &order->prune[i];
		if (f->iteration != e->iteration)
			continue;
		if (f->path)
			return leads_into(f->path, dir, e->name);
		return fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		       S_ISDIR(st.st_mode);
	}
	return false;
}

static void remove_tree(int at, const char *name, dev_t device, int depth)
{
	struct stat st;
	int fd = depth < DEPTH_MAX + 2
			 ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			 : -1;

	if (fd < 0) {
		unlinkat(at, name, 0);
		return;
	}
	_cleanup_(directory_close) DIR *d =
		fstat(fd, &st) == 0 && st.st_dev == device ? fdopendir(fd) : NULL;
	if (!d) {
		close(fd);
		return;
	}
	for (struct dirent *de; (de = readdir(d));)
		if (!mo_streq(de->d_name, ".") && !mo_streq(de->d_name, ".."))
			remove_tree(dirfd(d), de->d_name, device, depth + 1);
	unlinkat(at, name, AT_REMOVEDIR);
}

static bool is_gone(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

bool prune_entry(int dir_fd, const char *name)
{
	_cleanup_(mo_freep) char *going = mo_printf(REMOVING "%s", name);
	struct stat top, st;

	if (fstat(dir_fd, &top) < 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return is_gone(dir_fd, name);
	if (st.st_dev != top.st_dev || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return false;
	remove_tree(dir_fd, going, top.st_dev, 0); /* of an earlier save of the same name */
	if (renameat(dir_fd, name, dir_fd, going) < 0)
		return false;
	fsync(dir_fd);
	manifest_remove(dir_fd, name);
	remove_tree(dir_fd, going, top.st_dev, 0);
	return true;
}

void tree_remove(int at, const char *name)
{
	struct stat top;

	if (fstat(at, &top) == 0)
		remove_tree(at, name, top.st_dev, 0);
}

void prune_leftovers(int dir_fd)
{
	_cleanup_(directory_close) DIR *d = directory_open(dir_fd, ".", false);
	struct stat top;

	if (!d || fstat(dir_fd, &top) < 0)
		return;
	for (struct dirent *de; (de = readdir(d));)
		if (mo_starts_with(de->d_name, REMOVING))
			remove_tree(dir_fd, de->d_name, top.st_dev, 0);
}
