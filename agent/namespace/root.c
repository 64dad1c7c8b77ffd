/* The image becomes the root: a layer of the step's own over it, which nothing of the image is
 * written through; no file of it gives rights (nosuid) or is a device (nodev), whoever made it. */
#include "agent/namespace/root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent/core/stepd/namespace_words.h"
#include "agent/namespace/account.h"
#include "agent/namespace/devices.h"
#include "agent/namespace/holder.h"
#include "agent/namespace/image.h"
#include "agent/namespace/kernel.h"
#include "agent/namespace/mounts.h"
#include "agent/namespace/report.h"
#include "agent/namespace/squash.h"
#include "agent/namespace/store.h"
#include "agent/namespace/targets.h"
#include "agent/namespace/user.h"
#include "lib/base/fd.h"
#include "lib/wire/encode.h"

/* In the directory where the root is put together. */
#define IMAGE "image"
#define LAYER "layer"
#define ROOT "root"
#define NOBODY 65534 /* kernel.overflowuid */

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

/* The root of what is written is the root that everybody sees: as the image's. Of a box with users
 * of its own it is that user's, who is root there. */
static void make_layer(const struct box *b, int image)
{
	_cleanup_(mo_closep) int layer = open_dir(AT_FDCWD, LAYER);
	static const char *const names[] = { "work", "files" };
	struct stat st;

	if (mo_stat_fd(image, &st) < 0)
		report_failure(errno, "look at the image %s", b->root);
	uid_t uid = b->users > BOX_NODE ? user_uid(b) : st.st_uid;
	gid_t gid = b->users > BOX_NODE ? user_gid(b) : st.st_gid;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		make_dir(layer, names[i], 0700);
		_cleanup_(mo_closep) int dir = open_dir(layer, names[i]);

		if (mo_chown_fd(dir, uid, gid) < 0 ||
		    mo_chmod_fd(dir, i == 0 ? 0700 : st.st_mode & 01777) < 0)
			report_failure(errno, "give the step's layer the rights of the image");
	}
	if (b->users > BOX_NODE && mo_chown_fd(layer, uid, gid) < 0)
		report_failure(errno, "give the step's layer to the user");
}

static void place(int copy, const char *name)
{
	_cleanup_(mo_closep) int target = mo_open_at(AT_FDCWD, name, O_PATH | O_DIRECTORY, 0);
	int r = target < 0 ? target : kernel_place(copy, target);

	if (r < 0)
		report_failure(-r, "put the image together");
}

/* A directory's files as the step sees them. */
static void place_directory(const struct box *b, const struct image *image)
{
	_cleanup_(mo_closep) int copy = kernel_copy_open(image->root), owners = -1;
	struct stat st;

	if (copy < 0 || mo_stat_fd(copy, &st) < 0)
		report_failure(copy < 0 ? -copy : errno, "mount the image %s", b->root);
	if (b->users > BOX_NODE && image_is_lent(b, image)) {
		owners = user_of_files(b, st.st_uid, st.st_gid);
		int r = kernel_map_owners(copy, owners);

		if (r < 0)
			report_failure(-r,
				       "give the files of the image %s to the user: its file "
				       "system cannot; unpack it as the user (uid %lld)",
				       b->root, (long long)b->uid);
	}
	place(copy, IMAGE);
}

/* What overlayfs has below it must be mounted somewhere in this namespace. */
static void place_image(const struct box *b, const struct image *image)
{
	if (image->mount >= 0)
		place(image->mount, IMAGE);
	else if (image->n_layers == 0)
		place_directory(b, image);
}

/* The step's directory is covered, in this namespace, by one that this process is in from then on.
 */
static void cover_directory(const struct box *b, const char *dir)
{
	_cleanup_(mo_freep) char *options =
		mo_printf("mode=0700,uid=%lld,gid=%lld",
			  b->users > BOX_NODE ? (long long)user_uid(b) : 0,
			  b->users > BOX_NODE ? (long long)user_gid(b) : 0);

	if (mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 || chdir(dir) < 0)
		report_failure(errno, "mount a tmpfs on the step's directory");
}

/* The root is put together there, out of everybody's sight, and leaves it when it becomes the root.
 */
static void cover(const struct box *b, const struct image *image, const char *dir)
{
	_cleanup_(mo_closep) int disk =
		b->writable == WRITABLE_DISK ? open_dir(AT_FDCWD, b->upper) : -1;
	static const char *const names[] = { IMAGE, LAYER, ROOT };

	cover_directory(b, dir);
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		make_dir(AT_FDCWD, names[i], 0755);
	place_image(b, image);
	if (disk >= 0) {
		_cleanup_(mo_closep) int copy = kernel_copy_open(disk);

		if (copy < 0)
			report_failure(-copy, "mount the directory %s", b->upper);
		place(copy, LAYER);
	}
	make_layer(b, image->root);
}

/* O_PATH of the root. */
static int assemble(const struct box *b, const struct image *image)
{
	_cleanup_(mo_freep) char *lower =
		image->mount < 0 && image->n_layers == 0 ? mo_strdup(IMAGE) : image_lower(image);
	/* in a user namespace no other attributes can be written */
	_cleanup_(mo_freep) char *options =
		mo_printf("lowerdir=%s,upperdir=" LAYER "/files,workdir=" LAYER "/work%s", lower,
			  b->users > BOX_NODE ? ",userxattr" : "");

	if (mount("overlay", ROOT, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		report_failure(errno, "mount the image %s with a layer of the step in %s%s",
			       b->root, b->writable == WRITABLE_DISK ? b->upper : "memory",
			       b->users > BOX_NODE && errno == EINVAL
				       ? " (of another account, before Linux 5.19: unpack it as "
					 "the user)"
				       : "");
	int fd = mo_open_at(AT_FDCWD, ROOT, O_PATH | O_DIRECTORY, 0);

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

/* A mount of the box covers /run: who could rename or remove what lies in it on the node would take
 * the marker away. */
static void check_run(const struct box *b)
{
	uid_t root = b->users > BOX_NODE ? NOBODY : 0;
	struct stat st;

	if (mo_stat("/run", &st) < 0)
		report_failure(errno, "look at /run in the image");
	if (!target_is_own(&st) && (st.st_uid != root || st.st_mode & 022))
		report_failure(EACCES, "enter " NAMESPACE_MARKER
				       ": what is mounted on /run is not root's alone");
}

/* /run is the root user's, and a place that something is mounted on cannot be renamed: the marker
 * stays, whoever owns the image. It comes last, so that no mount of the box lies over it. */
static void place_outside(struct outside *o, const struct box *b)
{
	target_own("/");
	mount_place(&o->proc);
	mount_place(&o->sys);
	devices_place(&o->devices, b);
	place_run();
	account_home(b);
	if (o->passwd.copy >= 0)
		mount_place(&o->passwd);
	mounts_place(&o->mounts);
	check_run(b);
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

static char *said_by(const struct image *image, const struct runtime_image *stored)
{
	_cleanup_(image_config_done) struct image_config config;
	struct mo_buf b = { 0 };

	mo_desc_init(&image_config_desc, &config);
	if (stored->id)
		store_config(stored, &config);
	else
		image_read(image, &config);
	wire_encode(&image_config_desc, &config, &b);
	return mo_buf_take(&b);
}

/* The file is opened as the user, and mounted as root. */
static int open_squash(const struct box *b)
{
	user_begin(b);
	_cleanup_(mo_closep) int file = squash_open(b);

	user_end();
	return squash_mount(b, file);
}

/* From here on this process is the user. */
static void open_image(const struct box *b, const struct runtime_image *stored, const char *dir,
		       struct image *ret, struct holder *holder)
{
	int file = b->squashfs ? open_squash(b) : -1;

	if (b->holder)
		holder_find(b, ret, holder);
	else if (b->runtime)
		image_stack(stored, dir, ret);
	else if (b->brought)
		image_open(b, ret);
	user_begin(b);
	if (b->squashfs)
		image_open_at(file, ret);
	else if (!b->runtime && !b->brought)
		image_open(b, ret);
}

static void check(const struct box *b)
{
	if (user_is_alone() && b->uid == NOBODY)
		report_failure(EINVAL,
			       "use the image %s as uid %d: in a user namespace all accounts "
			       "that are not there have that number",
			       b->root, NOBODY);
	if (b->users > BOX_NODE && (b->runtime || b->squashfs))
		report_failure(EOPNOTSUPP,
			       "use the image %s: in a user namespace only a directory can be an "
			       "image: unpack it (moe-image)",
			       b->root);
	if (b->uid < 0 || b->uid >= UINT32_MAX || b->gid < 0 || b->gid >= UINT32_MAX)
		report_failure(EINVAL, "read the box: it names no user");
	if (b->holder && (!b->runtime || b->users > BOX_NODE || b->writable != WRITABLE_DISK))
		report_failure(EOPNOTSUPP,
			       "use the image %s: no container of a runtime is what is asked for",
			       b->root);
	if (b->writable < 0 || (b->writable == WRITABLE_DISK && !b->upper && !b->holder))
		report_failure(EINVAL, "read the box: it has no place for what the step writes");
}

/* What is between this process's root and the one that everybody sees. */
static void become_root(const struct box *b, const struct image *image, struct holder *holder)
{
	if (b->holder) {
		holder_enter(holder);
		return;
	}
	_cleanup_(mo_closep) int users = user_namespace(b);

	user_enter(b, users);
	_cleanup_(mo_closep) int root = assemble(b, image);
	int r = kernel_change_root(root);

	if (r < 0)
		report_failure(-r, "make the image the root");
}

char *root_make(const struct box *b, const struct runtime_image *stored, const char *dir)
{
	_cleanup_(mo_freep) char *who = mo_printf("the user (uid %lld)", (long long)b->uid);
	struct outside outside;
	struct image image;
	struct holder holder = { .mnt = -1 };

	check(b);
	copy_outside(b, dir, &outside);
	open_image(b, stored, dir, &image, &holder);
	char *said = said_by(&image, stored);
	_cleanup_(mo_buf_done) struct mo_buf passwd = { 0 };

	account_read(b, &image, &passwd);
	mounts_copy(b->mounts, b->n_mounts, who, &outside.mounts);
	user_end();
	if (b->holder)
		cover_directory(b, dir);
	else
		cover(b, &image, dir);
	outside.passwd.copy = -1;
	if (passwd.len > 0)
		account_copy(&passwd, dir, &outside.passwd);
	become_root(b, &image, &holder);
	image_close(&image);
	place_outside(&outside, b);
	if (b->writable == WRITABLE_NO)
		close_root();
	return said;
}
