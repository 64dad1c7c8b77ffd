/* See holder.h. */
#include "agent/namespace/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/stepd/namespace_words.h"
#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/proc.h"

/* A runtime may say that a container runs before the kernel has executed its program. */
#define EXEC_TRIES 200
#define EXEC_REST_MS 10

/* A process that a runtime has named. */
struct named {
	pid_t pid;
	const char *runtime;
};

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return mo_stat(a, &x) == 0 && mo_stat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static char *place_of(const struct named *p, const char *name)
{
	return mo_printf("/proc/%d/%s", (int)p->pid, name);
}

static bool has_ended(int pidfd)
{
	struct pollfd life = { .fd = pidfd, .events = POLLIN };

	return poll(&life, 1, 0) != 0;
}

/* Its program is the file that was given to the runtime, which lies in no image. */
static void check_program(const struct named *p, int pidfd)
{
	_cleanup_(mo_freep) char *exe = place_of(p, "exe");
	_cleanup_(mo_freep) char *own = mo_libexec("moe-hold");

	for (int i = 0; own && i < EXEC_TRIES && !has_ended(pidfd); i++) {
		if (same_file(exe, own))
			return;
		mo_clock_rest_ms(EXEC_REST_MS);
	}
	report_failure(EBADMSG, "enter the container of %s: its process %d %s", p->runtime,
		       (int)p->pid, has_ended(pidfd) ? "has ended" : "is not moe-hold");
}

/* The node's own is that of the supervisor. */
static void check_spaces(const struct named *p)
{
	const struct named supervisor = { .pid = getppid() };
	_cleanup_(mo_freep) char *node = place_of(&supervisor, "ns/mnt");
	_cleanup_(mo_freep) char *mnt = place_of(p, "ns/mnt"), *user = place_of(p, "ns/user");

	if (same_file(mnt, node))
		report_failure(EBADMSG, "enter the container of %s: its process %d is in none",
			       p->runtime, (int)p->pid);
	if (!same_file(user, "/proc/self/ns/user"))
		report_failure(EBADMSG,
			       "enter the container of %s: its process %d has users of its own "
			       "(userns-remap)",
			       p->runtime, (int)p->pid);
}

static void check_marker(const struct named *p, const struct box *b, int root)
{
	_cleanup_(mo_buf_done) struct mo_buf said = { 0 };
	_cleanup_(mo_freep) char *id = mo_printf("%s\n", b->step);
	int r = image_file(root, &NAMESPACE_MARKER[1], &said);

	mo_buf_str(&said, "");
	size_t shown = strcspn(said.data, "\n");

	if (r < 0 || !mo_streq(said.data, id))
		report_failure(EBADMSG,
			       "enter the container of %s: its process %d is not this step's: "
			       "its " NAMESPACE_MARKER " says '%.*s'",
			       p->runtime, (int)p->pid, (int)shown, said.data);
}

/* What is opened belongs to one process: it lives before and after. */
void holder_find(const struct box *b, const struct runtime_image *stored, struct image *ret,
		 struct holder *holder)
{
	const struct named p = { .pid = (pid_t)stored->pid, .runtime = b->runtime };
	_cleanup_(mo_closep) int pidfd = mo_proc_open(p.pid);
	_cleanup_(mo_freep) char *root = place_of(&p, "root"), *mnt = place_of(&p, "ns/mnt");

	if (pidfd < 0)
		report_failure(-pidfd, "enter the container of %s: its process %d does not run",
			       p.runtime, (int)p.pid);
	check_program(&p, pidfd);
	check_spaces(&p);
	*ret = (struct image){ .bundle = -1, .mount = -1 };
	ret->root = mo_open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
	holder->mnt = mo_open_at(AT_FDCWD, mnt, O_RDONLY, 0);
	if (ret->root < 0 || holder->mnt < 0)
		report_failure(errno, "open the container of %s", p.runtime);
	check_marker(&p, b, ret->root);
	if (has_ended(pidfd))
		report_failure(ESRCH, "enter the container of %s: its process %d has ended",
			       p.runtime, (int)p.pid);
	if (dup3(pidfd, BOX_HOLDER_FD, O_CLOEXEC) < 0)
		report_failure(errno, "keep the process of the container");
}

void holder_enter(struct holder *holder)
{
	if (setns(holder->mnt, CLONE_NEWNS) < 0)
		report_failure(errno, "enter the container");
	holder->mnt = mo_close(holder->mnt);
	_cleanup_(mo_closep) int root = mo_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	int r = root < 0 ? root : kernel_set_flags(root, FLAG_NOSUID | FLAG_NODEV, true);

	if (r < 0)
		report_failure(-r, "take rights away from what is in the container");
}
