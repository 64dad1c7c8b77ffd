/* moe-namespace STEPDIR: makes the mount namespace of one step, and is gone. moe-stepd starts it
 * before anything of the job, opens /proc/PID/ns/mnt of it, and closes its standard input; then
 * this process ends, and the namespace lives as long as a process or a descriptor of the step does.
 * What is mounted on the host later appears in it too; what is mounted in it the host never sees.
 *
 * What is in it STEPDIR/box says (agent/core/stepd/box.h): the node's own files (no such file), the
 * node's with walls before directories of devices, or an image.
 *
 * In it the file /run/moe-step holds the step's id, read-only: with the number of the namespace,
 * which the kernel gives away again, it proves that a process belongs to the step, whatever it has
 * done to its environment and its parents. The file is STEPDIR/step_id, bound over an empty one
 * that stays on the host, or in the image's /run.
 *
 * It is a program of its own, so that moe-stepd needs no right to mount. To descriptor 3 goes one
 * line: "ok", or "ERRNO WHAT" for what could not be done; of an image a second one (report.h).
 * Whatever is done ends with this process: nothing has to be undone. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/core/stepd/box.h"
#include "agent/core/stepd/namespace_words.h"
#include "agent/namespace/devices.h"
#include "agent/namespace/report.h"
#include "agent/namespace/root.h"
#include "agent/namespace/store.h"
#include "agent/namespace/user.h"
#include "lib/base/fd.h"
#include "lib/wire/decode.h"

#define BOX_BYTES_MAX (4 * 1024 * 1024)

/* The empty file on the host. */
static void make_target(const char *path)
{
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0444);

	if (fd < 0)
		report_failure(-fd, "make the file " NAMESPACE_MARKER);
}

static void mark(const char *dir)
{
	_cleanup_(mo_freep) char *id = mo_path(dir, "step_id");

	if (mount(id, NAMESPACE_MARKER, NULL, MS_BIND, NULL) < 0)
		report_failure(errno, "mount the step's id on " NAMESPACE_MARKER);
	if (mount(NULL, NAMESPACE_MARKER, NULL,
		  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		report_failure(errno, "make " NAMESPACE_MARKER " read-only");
}

/* No file: all unknown, and false. */
static bool read_box(const char *dir, struct box *ret)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "box");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = mo_read_file(path, BOX_BYTES_MAX, &b);

	mo_desc_init(&box_desc, ret);
	if (r == -ENOENT)
		return false;
	if (r >= 0)
		r = wire_decode(&box_desc, b.data ? b.data : "", b.len, false, ret, &err);
	if (r < 0)
		report_failure(-r, "read the box: %s", mo_error_text(&err, r));
	return true;
}

int main(int argc, char *argv[])
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("moe-namespace %s\n", MO_VERSION);
		return 0;
	}
	if (argc != 2 || argv[1][0] != '/') {
		fprintf(stderr, "usage: moe-namespace STEPDIR (it is started by moe-stepd)\n");
		return 2;
	}
	_cleanup_(box_done) struct box box;
	_cleanup_(runtime_image_done) struct runtime_image stored;
	_cleanup_(mo_freep) char *said = NULL;
	bool asked = read_box(argv[1], &box);

	umask(022);
	mo_desc_init(&runtime_image_desc, &stored);
	if (asked && box.runtime)
		store_ask(&box, argv[1], &stored);
	/* targets are resolved in the working directory (targets.c) */
	if (chdir("/") < 0)
		report_failure(errno, "enter the root");
	if (asked && box.users > BOX_NODE && geteuid() != 0)
		user_enter_alone(&box);
	else if (unshare(CLONE_NEWNS) < 0)
		report_failure(errno, NAMESPACE_MAKE);
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		report_failure(errno, "keep its mounts from the host");
	if (asked && box.root)
		said = root_make(&box, &stored, argv[1]);
	else {
		if (asked)
			walls_make(&box);
		make_target(NAMESPACE_MARKER);
		mark(argv[1]);
	}
	report_made(said);
}
