/* See squash.h. The loop device clears itself when the mount has ended: nothing is left of a maker
 * or a step that is killed. */
#include "agent/namespace/squash.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "lib/base/fd.h"

#define CONTROL "/dev/loop-control"
#define TRIES 64 /* another one may take the device that was free */

int squash_open(const struct box *b)
{
	int fd = mo_open_at(AT_FDCWD, b->root, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		report_failure(-fd, "open the image %s on this node as the user (uid %lld)",
			       b->root, (long long)b->uid);
	if (mo_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode))
		report_failure(EINVAL, "use the image %s: it is no regular file", b->root);
	return fd;
}

/* Its path in *ret_path; the device, which must be open until it is mounted. */
static int attach(int control, int file, char **ret_path)
{
	const struct loop_config config = { .fd = (uint32_t)file,
					    .info = { .lo_flags = LO_FLAGS_READ_ONLY |
								  LO_FLAGS_AUTOCLEAR } };
	int number = ioctl(control, LOOP_CTL_GET_FREE);

	if (number < 0)
		return -errno;
	_cleanup_(mo_freep) char *path = mo_printf("/dev/loop%d", number);
	_cleanup_(mo_closep) int device = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);

	if (device < 0)
		return device;
	if (ioctl(device, LOOP_CONFIGURE, &config) < 0)
		return -errno;
	*ret_path = TAKE_PTR(path);
	return TAKE_FD(device);
}

int squash_mount(const struct box *b, int file)
{
	_cleanup_(mo_closep) int control = mo_open_at(AT_FDCWD, CONTROL, O_RDWR, 0);
	_cleanup_(mo_closep) int device = -EBUSY;
	_cleanup_(mo_freep) char *path = NULL;

	if (control < 0)
		report_failure(ENODEV, "open " CONTROL " (%s), for the image %s",
			       strerror(-control), b->root);
	for (int i = 0; i < TRIES && device == -EBUSY; i++)
		device = attach(control, file, &path);
	if (device < 0)
		report_failure(ENODEV, "make a loop device of the image %s (%s)", b->root,
			       strerror(-device));
	int root = kernel_mount("squashfs", path);

	if (root == -ENODEV)
		report_failure(ENODEV, "mount the image %s: the kernel knows no squashfs", b->root);
	if (root < 0)
		report_failure(EINVAL,
			       "mount the image %s: it is no squashfs that this kernel reads "
			       "(%s)",
			       b->root, strerror(-root));
	return root;
}
