/* See devices.h. */
#include "agent/namespace/devices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "agent/namespace/targets.h"
#include "lib/base/fd.h"

#define AS_AGENT "the agent"

static void copy_device(const char *source, const char *target, struct mount *ret)
{
	struct stat st;

	mount_copy(source, target, FLAG_NOSUID | FLAG_NOEXEC, false, AS_AGENT, ret);
	if (mo_stat_fd(ret->copy, &st) < 0 || (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
		report_failure(ENODEV, "take the device %s of this node: it is none", source);
}

static bool below(const char *path, const char *dir)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	size_t n = strlen(dir);

	return mo_starts_with(clean, dir) && clean[n] == '/';
}

static struct mount *add(struct mounts *m)
{
	return MO_GROW(m->items, m->n_items);
}

void devices_copy(const struct box *b, struct devices *ret)
{
	static const char *const expected[] = { "/dev/null",   "/dev/zero",    "/dev/full",
						"/dev/random", "/dev/urandom", "/dev/tty" };

	*ret = (struct devices){ .shm.copy = -1, .queues.copy = -1 };
	for (size_t i = 0; i < ELEMENTSOF(expected); i++)
		copy_device(expected[i], expected[i], add(&ret->wanted));
	for (size_t i = 0; i < b->n_devices; i++) {
		if (!below(b->devices[i].target, "/dev"))
			report_failure(EINVAL, "enter the device %s: it must lie below /dev",
				       b->devices[i].target);
		copy_device(b->devices[i].source, b->devices[i].target, add(&ret->wanted));
	}
	if (b->shm_bytes <= 0)
		mount_copy("/dev/shm", "/dev/shm", FLAG_NOSUID | FLAG_NODEV, true, AS_AGENT,
			   &ret->shm);
	if (mo_access("/dev/mqueue", F_OK) == 0)
		mount_copy("/dev/mqueue", "/dev/mqueue", FLAG_NOSUID | FLAG_NODEV | FLAG_NOEXEC,
			   false, AS_AGENT, &ret->queues);
}

/* Made in a directory that is the step's own. */
static void mount_new(const char *type, const char *path, unsigned long flags, const char *options)
{
	mo_close(target_open(path, true));
	if (mount(type, path, type, MS_NOSUID | flags, options) < 0)
		report_failure(errno, "mount a %s on %s", type, path);
}

static void make_links(void)
{
	static const char *const links[][2] = { { "/proc/self/fd", "/dev/fd" },
						{ "/proc/self/fd/0", "/dev/stdin" },
						{ "/proc/self/fd/1", "/dev/stdout" },
						{ "/proc/self/fd/2", "/dev/stderr" },
						{ "pts/ptmx", "/dev/ptmx" } };

	for (size_t i = 0; i < ELEMENTSOF(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			report_failure(errno, "make the link %s", links[i][1]);
}

static void place_shm(struct devices *d, int64_t bytes)
{
	_cleanup_(mo_freep) char *options = mo_printf("mode=1777,size=%lld", (long long)bytes);

	if (d->shm.copy >= 0)
		mount_place(&d->shm);
	else
		mount_new("tmpfs", "/dev/shm", MS_NODEV, options);
}

void devices_place(struct devices *d, const struct box *b)
{
	/* a device of the tmpfs itself would open nowhere: those that do are mounts on it */
	mount_new("tmpfs", "/dev", MS_NODEV | MS_NOEXEC, "mode=0755,size=1m");
	target_own("/dev");
	make_links();
	/* group 5: terminals, as every distribution numbers it; in a user namespace it is nobody's
	 */
	mount_new("devpts", "/dev/pts", MS_NOEXEC,
		  b->users > BOX_NODE ? "newinstance,ptmxmode=0666,mode=0620"
				      : "newinstance,ptmxmode=0666,mode=0620,gid=5");
	place_shm(d, b->shm_bytes);
	if (d->queues.copy >= 0)
		mount_place(&d->queues);
	mounts_place(&d->wanted);
}

static void wall(const struct box *b, const char *dir)
{
	struct mounts behind = { 0 };

	for (size_t i = 0; i < b->n_devices; i++)
		if (below(b->devices[i].target, dir))
			copy_device(b->devices[i].source, b->devices[i].target, add(&behind));
	if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=1m") < 0)
		report_failure(errno, "keep the other devices in %s away", dir);
	target_own(dir);
	mounts_place(&behind);
	if (mount(NULL, dir, NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		report_failure(errno, "make %s read-only", dir);
}

void walls_make(const struct box *b)
{
	struct stat st;

	for (size_t i = 0; i < b->n_walled; i++)
		if (mo_stat(b->walled[i], &st) == 0 && S_ISDIR(st.st_mode))
			wall(b, b->walled[i]);
}
