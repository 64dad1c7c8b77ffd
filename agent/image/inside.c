/* See inside.h. Numbers and struct as in linux/openat2.h. */
#include "agent/image/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/file.h"

#define NO_MOUNTS 1      /* RESOLVE_NO_XDEV */
#define NO_MAGIC_LINKS 2 /* RESOLVE_NO_MAGICLINKS */
#define IN_ROOT 0x10     /* RESOLVE_IN_ROOT */
#define TRIES 100

struct how { /* open_how */
	uint64_t flags, mode, resolve;
};

int inside_open(int root, const char *path, int flags)
{
	struct how how = { .flags = (uint64_t)flags | O_CLOEXEC,
			   .resolve = NO_MOUNTS | NO_MAGIC_LINKS | IN_ROOT };
	long r = -1;

	errno = EAGAIN;
	/* EAGAIN: somebody renamed or mounted something on this machine meanwhile */
	for (int i = 0; i < TRIES && r < 0 && errno == EAGAIN; i++)
		r = syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
	return r < 0 ? -errno : (int)r;
}

/* The path ends with a name that is missing, or with one that is no directory. */
static int make_last(int root, const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(mo_freep) char *above = mo_strndup(path, slash ? (size_t)(slash - path) : 0);
	_cleanup_(mo_closep) int dir = inside_open(root, above, O_PATH | O_DIRECTORY);

	if (dir < 0)
		return dir;
	return mkdirat(dir, slash ? slash + 1 : path, 0755) < 0 ? -errno : 0;
}

int inside_directory(int root, const char *path)
{
	int r = inside_open(root, path, O_PATH | O_DIRECTORY);

	if (r != -ENOENT)
		return r;
	for (size_t i = 1; i <= strlen(path); i++) {
		_cleanup_(mo_freep) char *part = mo_strndup(path, i);
		_cleanup_(mo_closep) int there = -1;

		if (path[i] != '/' && path[i] != 0)
			continue;
		there = inside_open(root, part, O_PATH | O_DIRECTORY);
		r = there == -ENOENT ? make_last(root, part) : MO_MIN(there, 0);
		if (r < 0)
			return r;
	}
	return inside_open(root, path, O_PATH | O_DIRECTORY);
}
