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
#include "lib/base/rooted.h"

/* A runtime may say that a container runs before the kernel has executed its program. */
#define EXEC_TRIES 200
#define EXEC_REST_MS 10
#define MARKER_MAX 4096

struct search {
	const char *program; /* moe-hold of this node, which lies in no image */
	const char *marker;  /* what the step's has in it */
	const char *why;     /* it is not one that is this step's; NULL: there is none */
	int pidfd, root, mnt;
};

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return mo_stat(a, &x) == 0 && mo_stat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static char *place_of(pid_t pid, const char *name)
{
	return mo_printf("/proc/%d/%s", (int)pid, name);
}

static bool has_ended(int pidfd)
{
	struct pollfd life = { .fd = pidfd, .events = POLLIN };

	return poll(&life, 1, 0) != 0;
}

static bool is_hold(const struct search *s, pid_t pid)
{
	_cleanup_(mo_freep) char *exe = place_of(pid, "exe");

	return same_file(exe, s->program);
}

static bool is_marked(const struct search *s, int root)
{
	_cleanup_(mo_buf_done) struct mo_buf said = { 0 };
	int r = mo_read_in(root, &NAMESPACE_MARKER[1], O_NOFOLLOW, MARKER_MAX, &said);

	mo_buf_str(&said, "");
	return r == 0 && mo_streq(said.data, s->marker);
}

/* What keeps the step out of its spaces; NULL: nothing. The node's own are the supervisor's. */
static const char *wrong_spaces(pid_t pid)
{
	_cleanup_(mo_freep) char *mnt = place_of(pid, "ns/mnt"), *user = place_of(pid, "ns/user");
	_cleanup_(mo_freep) char *node = place_of(getppid(), "ns/mnt");

	if (same_file(mnt, node))
		return "its process is in none";
	return same_file(user, "/proc/self/ns/user")
		       ? NULL
		       : "its process has users of its own (userns-remap)";
}

/* What is opened belongs to one process: it lives before and after. */
static int look(void *arg, pid_t pid)
{
	struct search *s = arg;
	_cleanup_(mo_freep) char *mnt_path = place_of(pid, "ns/mnt"),
				 *root_path = place_of(pid, "root");

	if (!is_hold(s, pid))
		return 0;
	_cleanup_(mo_closep) int pidfd = mo_proc_open(pid);
	_cleanup_(mo_closep) int root = mo_open_at(AT_FDCWD, root_path, O_PATH | O_DIRECTORY, 0);
	_cleanup_(mo_closep) int mnt = mo_open_at(AT_FDCWD, mnt_path, O_RDONLY, 0);

	if (pidfd < 0 || root < 0 || mnt < 0 || !is_marked(s, root) || !is_hold(s, pid))
		return 0;
	s->why = wrong_spaces(pid);
	if (s->why || has_ended(pidfd))
		return 0;
	s->pidfd = TAKE_FD(pidfd);
	s->root = TAKE_FD(root);
	s->mnt = TAKE_FD(mnt);
	return 1;
}

void holder_find(const struct box *b, struct image *ret, struct holder *holder)
{
	_cleanup_(mo_freep) char *program = mo_libexec("moe-hold");
	_cleanup_(mo_freep) char *marker = mo_printf("%s\n", b->step);
	struct search s = { .program = program, .marker = marker, .pidfd = -1 };

	for (int i = 0; program && i < EXEC_TRIES && s.pidfd < 0; i++)
		if (mo_proc_each(look, &s) == 0)
			mo_clock_rest_ms(EXEC_REST_MS);
	if (s.pidfd < 0)
		report_failure(EBADMSG, "enter the container of %s: %s", b->runtime,
			       s.why ? s.why : "no moe-hold of this step runs");
	*ret = (struct image){ .bundle = -1, .mount = -1, .root = s.root };
	holder->mnt = s.mnt;
	if (dup3(s.pidfd, BOX_HOLDER_FD, O_CLOEXEC) < 0)
		report_failure(errno, "keep the process of the container");
	mo_close(s.pidfd);
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
