/* See inside.h. */
#include "agent/image/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/rooted.h"

/* The path ends with a name that is missing, or with one that is no directory. */
static int make_last(int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(mo_freep) char *above = mo_strndup(path, slash ? (size_t)(slash - path) : 0);
	_cleanup_(mo_closep) int dir = mo_open_in_fs(root, above, O_PATH | O_DIRECTORY);

	if (dir < 0)
		return dir;
	return mkdirat(dir, slash ? slash + 1 : path, 0755) < 0 ? -errno : 0;
}

int inside_directory(int root, const char *path)
{
	int r = mo_open_in_fs(root, path, O_PATH | O_DIRECTORY);

	if (r != -ENOENT)
		return r;
	for (size_t i = 1; i <= strlen(path); i++) {
		_cleanup_(mo_freep) char *part = mo_strndup(path, i);
		_cleanup_(mo_closep) int there = -1;

		if (path[i] != '/' && path[i] != 0)
			continue;
		there = mo_open_in_fs(root, part, O_PATH | O_DIRECTORY);
		r = there == -ENOENT ? make_last(root, part) : MO_MIN(there, 0);
		if (r < 0)
			return r;
	}
	return mo_open_in_fs(root, path, O_PATH | O_DIRECTORY);
}
