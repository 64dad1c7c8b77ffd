/* See rooted.h. Numbers and struct as in linux/openat2.h, which not every C library has. */
#include "lib/base/rooted.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

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
