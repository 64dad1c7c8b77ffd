/* The image becomes the root: a layer of the step's own over it, which nothing of the image is
 * written through; no file of it gives rights (nosuid) or is a device (nodev), whoever made it. */
#include "agent/namespace/root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "agent/core/stepd/namespace_words.h"
#include "agent/namespace/account.h"
#include "agent/namespace/devices.h"
#include "agent/namespace/image.h"
#include "agent/namespace/kernel.h"
#include "agent/namespace/mounts.h"
#include "agent/namespace/report.h"
#include "agent/namespace/targets.h"
#include "agent/namespace/user.h"
#include "lib/base/fd.h"
#include "lib/wire/encode.h"

static int open_dir(int at, const char *path)
{
	int fd = mo_open_at(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		report_failure(-fd, "open the directory %s for what the step writes", path);
	return fd;
}

static void make_dir(int at, const char *name, mode_t mode)
{
	if (mkdirat(at, name, mode) < 0)
		report_failure(errno, "make a directory for what the step writes");
}

/* The root of what is written is the root that everybody sees: as the image's. */
static void make_layer(int dir, int image)
{
	struct stat st;

	make_dir(dir, "files", 0700);
	make_dir(dir, "work", 0700);
	_cleanup_(mo_closep) int files = open_dir(dir, "files");

	if (mo_stat_fd(image, &st) < 0 || mo_chown_fd(files, st.st_uid, st.st_gid) < 0 ||
	    mo_chmod_fd(files, st.st_mode & 01777) < 0)
		report_failure(errno, "give the step's layer the rights of the image");
}

/* The step's directory is covered, in this namespace: the root is put together there, out of
 * everybody's sight, and leaves it when it becomes the root. O_PATH of it. */
static int assemble(const struct box *b, int image, const char *dir)
{
	if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") < 0)
		report_failure(errno, "mount a tmpfs on the step's directory");
	_cleanup_(mo_closep) int tmpfs = open_dir(AT_FDCWD, dir);
	_cleanup_(mo_closep) int disk =
		b->writable == WRITABLE_DISK ? open_dir(AT_FDCWD, b->upper) : -1;
	int layer = disk >= 0 ? disk : tmpfs;
	_cleanup_(mo_freep) char *options =
		mo_printf("lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/files,"
			  "workdir=/proc/self/fd/%d/work",
			  image, layer, layer);
	_cleanup_(mo_freep) char *root = mo_path(dir, "root");

	make_layer(layer, image);
	make_dir(tmpfs, "root", 0700);
	if (mount("overlay", root, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		report_failure(errno, "mount the image %s with a layer of the step in %s", b->root,
			       disk >= 0 ? b->upper : "memory");
	int fd = mo_open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);

	if (fd < 0)
		report_failure(-fd, "open the image");
	return fd;
}

/* What of the node is seen in the image. */
struct outside {
	struct mount proc, sys, marker;
	struct devices devices;
	struct mounts mounts;
	struct mount passwd; /* copy -1: the image's own */
};

static void copy_outside(const struct box *b, const char *dir, struct outside *ret)
{
	const unsigned flags = FLAG_NOSUID | FLAG_NODEV | FLAG_NOEXEC;
	_cleanup_(mo_freep) char *id = mo_path(dir, "step_id");

	mount_copy("/proc", "/proc", flags, true, "the agent", &ret->proc);
	mount_copy("/sys", "/sys", flags | FLAG_RDONLY, true, "the agent", &ret->sys);
	mount_copy(id, NAMESPACE_MARKER, flags | FLAG_RDONLY, false, "the agent", &ret->marker);
	ret->marker.source = "the step's id"; /* id ends here */
	devices_copy(b, &ret->devices);
}

static void place_run(void)
{
	mo_close(target_open("/run", true));
	if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		report_failure(errno, "mount a tmpfs on /run");
	target_own("/run");
}

/* /run is the root user's, and a place that something is mounted on cannot be renamed: the marker
 * stays, whoever owns the image. It comes last, so that no mount of the box lies over it. */
static void place_outside(struct outside *o, const struct box *b)
{
	target_own("/");
	mount_place(&o->proc);
	mount_place(&o->sys);
	devices_place(&o->devices, b->shm_bytes);
	place_run();
	account_home(b);
	if (o->passwd.copy >= 0)
		mount_place(&o->passwd);
	mounts_place(&o->mounts);
	mount_place(&o->marker);
}

static void close_root(void)
{
	_cleanup_(mo_closep) int root = mo_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	int r = root < 0 ? root
			 : kernel_set_flags(root, FLAG_RDONLY | FLAG_NOSUID | FLAG_NODEV, false);

	if (r < 0)
		report_failure(-r, "make the image read-only");
}

static char *said_by(const struct image *image)
{
	_cleanup_(image_config_done) struct image_config config;
	struct mo_buf b = { 0 };

	mo_desc_init(&image_config_desc, &config);
	image_read(image, &config);
	wire_encode(&image_config_desc, &config, &b);
	return mo_buf_take(&b);
}

static void check(const struct box *b)
{
	if (b->uid < 0 || b->uid >= UINT32_MAX || b->gid < 0 || b->gid >= UINT32_MAX)
		report_failure(EINVAL, "read the box: it names no user");
	if (b->writable < 0 || (b->writable == WRITABLE_DISK && !b->upper))
		report_failure(EINVAL, "read the box: it has no place for what the step writes");
}

char *root_make(const struct box *b, const char *dir)
{
	_cleanup_(mo_freep) char *who = mo_printf("the user (uid %lld)", (long long)b->uid);
	struct outside outside;
	struct image image;

	check(b);
	copy_outside(b, dir, &outside);
	user_begin(b);
	image_open(b, &image);
	image_lock(b, &image);
	char *said = said_by(&image);
	_cleanup_(mo_buf_done) struct mo_buf passwd = { 0 };

	account_read(b, &image, &passwd);
	mounts_copy(b->mounts, b->n_mounts, who, &outside.mounts);
	user_end();
	_cleanup_(mo_closep) int root = assemble(b, image.root, dir);

	outside.passwd.copy = -1;
	if (passwd.len > 0)
		account_copy(&passwd, dir, &outside.passwd);
	int r = kernel_change_root(root);

	if (r < 0)
		report_failure(-r, "make the image the root");
	mo_close(image.root);
	mo_close(image.bundle);
	place_outside(&outside, b);
	if (b->writable == WRITABLE_NO)
		close_root();
	return said;
}
