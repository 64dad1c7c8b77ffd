/* See kernel.h. Numbers and structs as in linux/mount.h: that header and sys/mount.h of glibc 2.35
 * define the same names. */
#include "agent/namespace/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/namespace/report.h"
#include "lib/base/file.h"
#include "lib/base/rooted.h"

#define COPY_TREE 1       /* OPEN_TREE_CLONE */
#define RECURSIVE 0x8000  /* AT_RECURSIVE */
#define FROM_EMPTY_PATH 4 /* MOVE_MOUNT_F_EMPTY_PATH */
#define CLOSE_ON_EXEC 1   /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */
#define SET_FLAG 0        /* FSCONFIG_SET_FLAG, SET_STRING, CMD_CREATE */
#define SET_STRING 1
#define CREATE 6
#define TO_EMPTY_PATH 0x40 /* MOVE_MOUNT_T_EMPTY_PATH */

#define MAP_OWNERS 0x100000 /* MOUNT_ATTR_IDMAP */

struct flags { /* mount_attr */
	uint64_t set, clear, propagation, userns_fd;
};

/* The result of a call, of which errno says why it failed. */
static int known(long result, const char *call)
{
	if (result >= 0)
		return (int)result;
	if (errno == ENOSYS)
		report_failure(ENOSYS, "call %s of the kernel: it is older than Linux 5.12", call);
	return -errno;
}

int kernel_copy_mount(const char *path, bool deep)
{
	unsigned flags = COPY_TREE | O_CLOEXEC | (deep ? RECURSIVE : 0);

	return known(syscall(SYS_open_tree, AT_FDCWD, path, flags), "open_tree");
}

int kernel_mount(const char *type, const char *source)
{
	_cleanup_(mo_closep) int fs = known(syscall(SYS_fsopen, type, CLOSE_ON_EXEC), "fsopen");

	if (fs < 0)
		return fs;
	if (syscall(SYS_fsconfig, fs, SET_FLAG, "ro", NULL, 0) < 0 ||
	    syscall(SYS_fsconfig, fs, SET_STRING, "source", source, 0) < 0 ||
	    syscall(SYS_fsconfig, fs, CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return known(syscall(SYS_fsmount, fs, CLOSE_ON_EXEC,
			     FLAG_RDONLY | FLAG_NOSUID | FLAG_NODEV),
		     "fsmount");
}

int kernel_copy_open(int fd)
{
	return known(syscall(SYS_open_tree, fd, "", COPY_TREE | O_CLOEXEC | AT_EMPTY_PATH),
		     "open_tree");
}

int kernel_map_owners(int copy, int user_namespace)
{
	struct flags f = { .set = MAP_OWNERS, .userns_fd = (uint64_t)user_namespace };

	return known(syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &f, sizeof(f)),
		     "mount_setattr");
}

int kernel_place(int copy, int target)
{
	return known(syscall(SYS_move_mount, copy, "", target, "", FROM_EMPTY_PATH | TO_EMPTY_PATH),
		     "move_mount");
}

static bool has_flags(int fd, unsigned flags)
{
	static const struct {
		unsigned flag, seen;
	} rows[] = { { FLAG_RDONLY, ST_RDONLY },
		     { FLAG_NOSUID, ST_NOSUID },
		     { FLAG_NODEV, ST_NODEV },
		     { FLAG_NOEXEC, ST_NOEXEC } };
	struct statvfs seen;

	if (fstatvfs(fd, &seen) < 0)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		if ((flags & rows[i].flag) && !(seen.f_flag & rows[i].seen))
			return false;
	return true;
}

int kernel_set_flags(int fd, unsigned flags, bool deep)
{
	struct flags f = { .set = flags };
	int r = known(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH | (deep ? RECURSIVE : 0), &f,
			      sizeof(f)),
		      "mount_setattr");

	return r < 0 ? r : has_flags(fd, flags) ? 0 : -EXDEV;
}

int kernel_open_in(int root, const char *path, int flags)
{
	return known(mo_open_in(root, path, flags), "openat2");
}

int kernel_change_root(int dir)
{
	/* The old root lands on top of the new one, and is taken off: pivot_root(2). */
	if (fchdir(dir) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}
