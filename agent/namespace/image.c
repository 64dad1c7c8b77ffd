/* See image.h. */
#include "agent/namespace/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

#define BUNDLE_CONFIG "config.json"
#define ENVIRONMENT "etc/environment"
#define LOCK_TRIES 100
#define LOCK_REST_MS 20

void image_open(const struct box *b, struct image *ret)
{
	*ret = (struct image){ .bundle = -1 };
	ret->root = b->root[0] != '/' ? -EINVAL
				      : mo_open_at(AT_FDCWD, b->root, O_PATH | O_DIRECTORY, 0);
	if (ret->root < 0)
		report_failure(-ret->root, "open the image %s on this node as the user (uid %lld)",
			       b->root, (long long)b->uid);
	int config = kernel_open_in(ret->root, BUNDLE_CONFIG, O_PATH | O_NOFOLLOW);
	int rootfs = kernel_open_in(ret->root, "rootfs", O_PATH | O_DIRECTORY | O_NOFOLLOW);

	if (config >= 0 && rootfs >= 0) {
		ret->bundle = ret->root;
		ret->root = TAKE_FD(rootfs);
	}
	mo_close(config);
	mo_close(rootfs);
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

void image_lock(const struct box *b, const struct image *image)
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

/* To open a FIFO or a device has effects of its own. */
int image_file(int dir, const char *name, struct mo_buf *ret)
{
	_cleanup_(mo_closep) int place = kernel_open_in(dir, name, O_PATH | O_NOFOLLOW);
	char path[64];
	struct stat st;

	if (place == -ENOENT || place == -ENOTDIR) /* /etc may be missing too */
		return -ENOENT;
	if (place < 0 || mo_stat_fd(place, &st) < 0)
		report_failure(errno, "read %s of the image", name);
	if (!S_ISREG(st.st_mode))
		report_failure(EINVAL, "read %s of the image: it is no regular file", name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	int r = mo_read_file(path, IMAGE_CONFIG_BYTES_MAX, ret);

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
