/* See image.h. */
#include "agent/namespace/image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "agent/namespace/user.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/rooted.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

#define BUNDLE_CONFIG "config.json"
#define ENVIRONMENT "etc/environment"
#define LOCK_TRIES 100
#define LOCK_REST_MS 20

/* Mounted for a moment where nothing else is, so that the highest of the layers that have a file is
 * read. */
static int open_merged(const struct image *image, const char *dir)
{
	_cleanup_(mo_freep) char *lower = image_lower(image);
	_cleanup_(mo_freep) char *options = mo_printf("lowerdir=%s", lower);

	if (mount("overlay", dir, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0)
		report_failure(errno, "mount the %zu layers of the image", image->n_layers);
	int fd = mo_open_at(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);

	if (umount2(dir, MNT_DETACH) < 0)
		report_failure(errno, "unmount the layers of the image");
	return fd;
}

void image_stack(const struct runtime_image *stored, const char *dir, struct image *ret)
{
	*ret = (struct image){ .bundle = -1,
			       .mount = -1,
			       .layers = mo_alloc_array(stored->n_layers, sizeof(int)),
			       .n_layers = stored->n_layers };
	for (size_t i = 0; i < stored->n_layers; i++) {
		const char *path = stored->layers[i];

		ret->layers[i] = mo_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
		if (ret->layers[i] < 0)
			report_failure(-ret->layers[i], "open the layer %s of the image", path);
	}
	/* one is no stack: the kernel asks for two */
	ret->root = ret->n_layers == 1 ? fcntl(ret->layers[0], F_DUPFD_CLOEXEC, 0)
				       : open_merged(ret, dir);
	if (ret->root < 0)
		report_failure(EIO, "open the image");
}

char *image_lower(const struct image *image)
{
	struct mo_buf b = { 0 };

	if (image->n_layers == 0)
		return mo_printf("/proc/self/fd/%d", image->root);
	for (size_t i = 0; i < image->n_layers; i++)
		mo_buf_printf(&b, "%s/proc/self/fd/%d", i ? ":" : "", image->layers[i]);
	return mo_buf_take(&b);
}

void image_close(struct image *image)
{
	for (size_t i = 0; i < image->n_layers; i++)
		mo_close(image->layers[i]);
	free(image->layers);
	mo_close(image->root);
	mo_close(image->bundle);
	mo_close(image->mount);
	*image = (struct image){ .root = -1, .mount = -1, .bundle = -1 };
}

/* The image's root is where its directory says. */
static void find_root(struct image *ret)
{
	int config = kernel_open_in(ret->root, BUNDLE_CONFIG, O_PATH | O_NOFOLLOW);
	int rootfs = kernel_open_in(ret->root, "rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW);

	if (config >= 0 && rootfs >= 0) {
		ret->bundle = ret->root;
		ret->root = TAKE_FD(rootfs);
	}
	mo_close(config);
	mo_close(rootfs);
}

void image_open_at(int mount, struct image *ret)
{
	*ret = (struct image){ .bundle = -1, .mount = mount };
	ret->root = fcntl(mount, F_DUPFD_CLOEXEC, 0);
	if (ret->root < 0)
		report_failure(errno, "open the image");
	find_root(ret);
}

/* Shared, and nothing is written: moe-image, which removes what has no lock, waits for nobody and
 * holds its own for a moment only. False: it is held all the time. */
static bool lock_shared(int fd)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return true;
		mo_clock_rest_ms(LOCK_REST_MS);
	}
	return false;
}

static void lock(const struct box *b, const struct image *image)
{
	_cleanup_(mo_freep) char *path =
		mo_printf("/proc/self/fd/%d", image->bundle >= 0 ? image->bundle : image->root);
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	struct stat here, there;

	if (fd < 0) /* the user may enter it, and not list it */
		return;
	if (!lock_shared(fd))
		report_failure(EBUSY, "use the image %s: it is being removed", b->root);
	if (mo_stat_fd(fd, &here) < 0 || mo_stat(b->root, &there) < 0 ||
	    here.st_ino != there.st_ino || here.st_dev != there.st_dev)
		report_failure(ESTALE, "use the image %s: it is being removed", b->root);
	if (dup3(fd, BOX_IMAGE_FD, O_CLOEXEC) < 0)
		report_failure(errno, "keep the lock on the image %s", b->root);
}

void image_open(const struct box *b, struct image *ret)
{
	int flags = O_PATH | O_DIRECTORY | (b->brought ? O_NOFOLLOW : 0);

	*ret = (struct image){ .bundle = -1, .mount = -1 };
	ret->root = b->root[0] != '/' ? -EINVAL : mo_open_at(AT_FDCWD, b->root, flags, 0);
	if (ret->root < 0 && b->brought)
		report_failure(-ret->root, "open the image %s, which was brought to this node",
			       b->root);
	if (ret->root < 0)
		report_failure(-ret->root, "open the image %s on this node as the user (uid %lld)",
			       b->root, (long long)b->uid);
	find_root(ret);
	lock(b, ret);
}

/* Made by that account, and nobody else can put something in its place. */
static bool is_of(int fd, uid_t owner, bool directory)
{
	struct stat st;

	return fd >= 0 && mo_stat_fd(fd, &st) == 0 && st.st_uid == owner &&
	       (directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)) && !(st.st_mode & 022);
}

bool image_is_lent(const struct box *b, const struct image *image)
{
	int64_t below = b->shared_below == MO_NONE ? 1 : MO_MAX(b->shared_below, 1);
	struct stat st;

	if (mo_stat_fd(image->root, &st) < 0)
		report_failure(errno, "look at the image %s", b->root);
	if (st.st_uid == user_uid(b))
		return false;
	if (user_is_alone())
		report_failure(EACCES,
			       "use the image %s: it is another account's, and the agent is not "
			       "root; unpack it as uid %lld",
			       b->root, (long long)b->uid);
	_cleanup_(mo_closep) int config =
		image->bundle < 0
			? -1
			: kernel_open_in(image->bundle, BUNDLE_CONFIG, O_PATH | O_NOFOLLOW);

	if (st.st_uid >= below)
		report_failure(EACCES,
			       "be root in the image %s: it belongs to uid %u; unpack it as the "
			       "user (uid %lld), or as root",
			       b->root, (unsigned)st.st_uid, (long long)b->uid);
	if (!is_of(image->bundle, st.st_uid, true) || !is_of(config, st.st_uid, false) ||
	    !is_of(image->root, st.st_uid, true))
		report_failure(EACCES,
			       "be root in the image %s: its files would become the user's, and "
			       "uid %u shares only bundles (config.json beside rootfs) that nobody "
			       "else can write; moe-image makes one",
			       b->root, (unsigned)st.st_uid);
	return true;
}

int image_file(int dir, const char *name, struct mo_buf *ret)
{
	int r = mo_read_in(dir, name, O_NOFOLLOW, IMAGE_CONFIG_BYTES_MAX, ret);

	if (r == -ENOENT || r == -ENOTDIR) /* /etc may be missing too */
		return -ENOENT;
	if (r == -EINVAL)
		report_failure(EINVAL, "read %s of the image: it is no regular file", name);
	if (r == -EFBIG)
		report_failure(EFBIG, "read %s of the image: it is larger than %d bytes", name,
			       IMAGE_CONFIG_BYTES_MAX);
	if (r < 0)
		report_failure(-r, "read %s of the image", name);
	return 0;
}

static int read_bundle(const struct mo_buf *b, struct image_config *ret, struct mo_error *err)
{
	_cleanup_(image_bundle_done) struct image_bundle bundle;

	mo_desc_init(&image_bundle_desc, &bundle);
	int r = wire_affordable(b->data, b->len, err);

	if (r == 0)
		r = wire_decode(&image_bundle_desc, b->data, b->len, false, &bundle, err);
	return r < 0 ? r : image_config_bundle(&bundle, ret, err);
}

void image_read(const struct image *image, struct image_config *ret)
{
	const char *name = image->bundle >= 0 ? BUNDLE_CONFIG : ENVIRONMENT;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (image_file(image->bundle >= 0 ? image->bundle : image->root, name, &b) < 0)
		return;
	mo_buf_str(&b, ""); /* of an empty file too */
	int r = image->bundle >= 0 ? read_bundle(&b, ret, &err)
				   : image_config_environment(b.data, b.len, ret, &err);

	if (r < 0)
		report_failure(-r, "read %s of the image: %s", name, mo_error_text(&err, r));
}
