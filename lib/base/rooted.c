/* See rooted.h. Numbers and struct as in linux/openat2.h, which not every C library has. */
#include "lib/base/rooted.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"

#define NO_MOUNTS 1      /* RESOLVE_NO_XDEV */
#define NO_MAGIC_LINKS 2 /* RESOLVE_NO_MAGICLINKS */
#define IN_ROOT 0x10     /* RESOLVE_IN_ROOT */
#define TRIES 100

struct how { /* open_how */
	uint64_t flags, mode, resolve;
};

static int open_in(int root, const char *path, int flags, uint64_t resolve)
{
	struct how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
			   .resolve = IN_ROOT | NO_MAGIC_LINKS | resolve };

	/* EAGAIN: somebody renamed or mounted something on this machine meanwhile */
	for (int i = 0; i < TRIES; i++) {
		int fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));

		if (fd >= 0 || errno != EAGAIN)
			return fd < 0 ? -errno : fd;
	}
	return -EAGAIN;
}

int mo_open_in(int root, const char *path, int flags)
{
	return open_in(root, path, flags, 0);
}

int mo_open_in_fs(int root, const char *path, int flags)
{
	return open_in(root, path, flags, NO_MOUNTS);
}

int mo_open_plain_in(int root, const char *path, int flags)
{
	_cleanup_(mo_closep) int place = mo_open_in(root, path, O_PATH | flags);
	char self[64];
	struct stat st;

	if (place < 0)
		return place;
	if (mo_stat_fd(place, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	return mo_open_at(AT_FDCWD, self, O_RDONLY, 0);
}

int mo_read_in(int root, const char *path, int flags, size_t max, struct mo_buf *b)
{
	_cleanup_(mo_closep) int fd = mo_open_plain_in(root, path, flags);

	return fd < 0 ? fd : mo_read_fd(fd, max, b);
}
