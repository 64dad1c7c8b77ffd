/* See users.h. */
#include "agent/discover/users.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/userns.h"

/* In the child, whose mounts end with it. */
static bool overlay_mounts(int users, const struct mo_userns *map)
{
	static const char *const names[] = { "/proc/l", "/proc/u", "/proc/w", "/proc/r" };

	/* over a directory that every machine has */
	if (mo_userns_enter(users, map) < 0 || mount("tmpfs", "/proc", "tmpfs", 0, NULL) < 0)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (mkdir(names[i], 0700) < 0)
			return false;
	return mount("overlay", "/proc/r", "overlay", MS_NOSUID | MS_NODEV,
		     "lowerdir=/proc/l,upperdir=/proc/u,workdir=/proc/w,userxattr") == 0;
}

bool users_can_be_made(void)
{
	const struct mo_userns map = { .uid = geteuid(), .gid = getegid() };
	_cleanup_(mo_closep) int users = mo_userns_make(&map);
	pid_t pid = users < 0 ? -1 : fork();
	int status = -1;

	if (pid == 0)
		_exit(overlay_mounts(users, &map) ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}
