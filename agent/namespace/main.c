/* moe-namespace STEPDIR: makes the mount namespace of one step, and is gone. moe-stepd starts it
 * before anything of the job, opens /proc/PID/ns/mnt of it, and closes its standard input; then
 * this process ends, and the namespace lives as long as a process or a descriptor of the step does.
 * What is mounted on the host later appears in it too; what is mounted in it the host never sees.
 *
 * In it the file /run/moe-step holds the step's id, read-only: with the number of the namespace,
 * which the kernel gives away again, it proves that a process belongs to the step, whatever it has
 * done to its environment and its parents. The file is STEPDIR/step_id, bound over an empty one
 * that stays on the host.
 *
 * It is a program of its own, so that moe-stepd needs no right to mount. To descriptor 3 goes one
 * line: "ok", or "ERRNO WHAT" for what could not be done. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent/core/stepd/namespace_words.h"
#include "lib/base/fd.h"

#define REPORT_FD 3

static _Noreturn void report(int error, const char *what)
{
	_cleanup_(mo_freep) char *line =
		error ? mo_printf("%d %s\n", error, what) : mo_strdup("ok\n");

	/* who does not hear it has ended, and this process with it */
	if (mo_write_all(REPORT_FD, line, strlen(line)) < 0 || error)
		_exit(1);
	struct pollfd life = { .fd = STDIN_FILENO };

	while (poll(&life, 1, -1) < 0 && errno == EINTR)
		continue;
	_exit(0);
}

/* The empty file on the host. */
static void make_target(const char *path)
{
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0444);

	if (fd < 0)
		report(-fd, "make the file " NAMESPACE_MARKER);
}

static void mark(const char *dir)
{
	_cleanup_(mo_freep) char *id = mo_path(dir, "step_id");

	if (mount(id, NAMESPACE_MARKER, NULL, MS_BIND, NULL) < 0)
		report(errno, "mount the step's id on " NAMESPACE_MARKER);
	if (mount(NULL, NAMESPACE_MARKER, NULL,
		  MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		report(errno, "make " NAMESPACE_MARKER " read-only");
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
	if (unshare(CLONE_NEWNS) < 0)
		report(errno, NAMESPACE_MAKE);
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		report(errno, "keep its mounts from the host");
	make_target(NAMESPACE_MARKER);
	mark(argv[1]);
	report(0, NULL);
}
