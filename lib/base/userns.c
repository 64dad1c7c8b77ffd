/* See userns.h. The kernel takes the map of a namespace only from outside of it, or of one number:
 * a child that makes it and waits is where it is written. */
#include "lib/base/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"

/* The child: says 0 or its errno, and lives until the other end is closed. */
static _Noreturn void hold(int said, int life)
{
	char byte;
	int error = unshare(CLONE_NEWUSER) < 0 ? errno : 0;

	if (mo_write_all(said, &error, sizeof(error)) == 0 && !error)
		(void)mo_read(life, &byte, 1);
	_exit(0);
}

static int put(pid_t pid, const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_WRONLY, 0);

	return fd < 0 ? fd : mo_write_all(fd, text, strlen(text));
}

static int put_map(pid_t pid, const char *name, unsigned inside, unsigned outside)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1\n", inside, outside);
	return put(pid, name, text);
}

/* 0, or a negative errno. */
static int map_written(pid_t pid, const struct mo_userns *map)
{
	/* who is not root may map his group only where nobody can give groups up */
	int r = geteuid() == 0 ? 0 : put(pid, "setgroups", "deny");

	if (r == 0)
		r = put_map(pid, "uid_map", map->inside_uid, map->uid);
	if (r == 0)
		r = put_map(pid, "gid_map", map->inside_gid, map->gid);
	return r;
}

static int take(pid_t pid, int said, const struct mo_userns *map)
{
	char path[64];
	int error = 0;
	ssize_t n = mo_read(said, &error, sizeof(error));

	if (n != sizeof(error) || error)
		return n == sizeof(error) ? -error : -EIO;
	int r = map_written(pid, map);

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return r < 0 ? r : mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
}

int mo_userns_make(const struct mo_userns *map)
{
	int said[2], life[2];

	if (pipe2(said, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(mo_closep) int ours = said[0];
	if (pipe2(life, O_CLOEXEC) < 0) {
		int r = -errno;

		mo_close(said[1]);
		return r;
	}
	_cleanup_(mo_closep) int end = life[0];
	pid_t pid = fork();

	if (pid == 0) {
		mo_close(life[1]); /* else it would wait for itself */
		hold(said[1], life[0]);
	}
	int r = pid < 0 ? -errno : 0;

	mo_close(said[1]);
	if (r == 0)
		r = take(pid, ours, map);
	mo_close(life[1]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return r;
}

int mo_userns_enter(int fd, const struct mo_userns *map)
{
	if (setns(fd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0 ||
	    setresgid(map->inside_gid, map->inside_gid, map->inside_gid) < 0 ||
	    setresuid(map->inside_uid, map->inside_uid, map->inside_uid) < 0)
		return -errno;
	return 0;
}

/* What installing packages needs. Not CAP_SYS_ADMIN and CAP_SYS_CHROOT: with them a process leaves
 * the root by which it is known to belong to its step. */
static const uint64_t kept = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
			     1ULL << CAP_FSETID | 1ULL << CAP_SETGID | 1ULL << CAP_SETUID |
			     1ULL << CAP_SETFCAP;

/* Root gets what is bounding at each exec: what is not kept is taken away there too. */
static int drop_rights(void)
{
	struct __user_cap_header_struct version = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct both[] = {
		{ .effective = (uint32_t)kept, .permitted = (uint32_t)kept },
		{ .effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32) },
	};

	for (unsigned long cap = 0; cap < 64; cap++)
		if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno != EINVAL || cap == 0)
				return -errno;
			break; /* the kernel's last was the one before */
		}
	return syscall(SYS_capset, &version, both) < 0 ? -errno : 0;
}

int mo_userns_become(int user_fd, int mnt_fd, const struct mo_identity *who)
{
	uid_t ru, eu, su;
	gid_t rg, eg, sg;

	/* before: inside, the groups of this node cannot be named any more */
	if (who->change && setgroups((size_t)who->n_groups, who->groups) < 0)
		return -errno;
	if (setns(user_fd, CLONE_NEWUSER) < 0 || setns(mnt_fd, CLONE_NEWNS) < 0 ||
	    (who->change && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)))
		return -errno;
	int r = drop_rights();

	if (r < 0 || getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0)
		return r < 0 ? r : -errno;
	return who->change && (ru || eu || su || rg || eg || sg) ? -EPERM : 0;
}
