/* See image.h. */
#include "agent/namespace/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "lib/base/fd.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

#define BUNDLE_CONFIG "config.json"
#define ENVIRONMENT "etc/environment"

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
