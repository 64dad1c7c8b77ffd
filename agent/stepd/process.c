/* See process.h. */
#include "agent/stepd/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/epoll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/stepd/child.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"
#include "lib/base/userns.h"

/* Born in the ranks' cgroup where the kernel can (Linux 5.7): moving a process costs an RCU
 * grace period, 10 to 50 ms. Else the child moves itself. glibc's fork() does nothing that a
 * child which only execs needs. */
static pid_t fork_in_cgroup(struct stepd *s, struct child_plan *p, int *ret_pidfd)
{
	struct clone_args a = { .flags = CLONE_INTO_CGROUP | CLONE_PIDFD,
				.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
				.exit_signal = SIGCHLD,
				.cgroup = (uint64_t)s->cgroup_fd };
	int procs_fd = TAKE_FD(p->cgroup_fd);
	pid_t pid = s->cgroup_fd >= 0 ? (pid_t)syscall(SYS_clone3, &a, sizeof(a)) : -1;
	if (pid >= 0)
		return pid;
	p->cgroup_fd = procs_fd;
	pid = fork();
	if (pid > 0)
		*ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return pid;
}

int process_fork(struct stepd *s, struct rank *r, struct child_plan *p, source_fn on_report,
		 source_fn on_death)
{
	int report[2], pidfd = -1;
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	_cleanup_(mo_closep) int child_end = report[1];
	r->report = (struct source){ .fd = report[0], .fn = on_report, .owner = r };
	p->report_fd = child_end;
	pid_t pid = fork_in_cgroup(s, p, &pidfd);
	if (pid == 0)
		child_run(p);
	if (pid < 0) {
		int e = -errno;
		wake_unwatch(s, &r->report);
		return e;
	}
	r->pid = pid;
	r->pidfd = (struct source){ .fd = pidfd, .fn = on_death, .owner = r };
	if (pidfd < 0)
		return -errno;
	int e = wake_watch(s, &r->pidfd, EPOLLIN);
	return e < 0 ? e : wake_watch(s, &r->report, EPOLLIN);
}

static void raise_limit(struct stepd *s, const char *name, int which, int64_t wanted)
{
	uint64_t now;
	if (wanted == MO_NONE || mo_proc_raise_limit(which, wanted, &now) != 1)
		return;
	/* it has a ceiling everywhere */
	bool as_high_as_possible = wanted < 0 && which == RLIMIT_NOFILE;
	if (!as_high_as_possible)
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "limit %s is %lld instead of the configured value: the agent may not raise "
		       "it; raise it in the agent's unit",
		       name, (long long)now);
}

void process_raise_limits(struct stepd *s)
{
	raise_limit(s, "nofile", RLIMIT_NOFILE, s->spool.nofile);
	raise_limit(s, "memlock", RLIMIT_MEMLOCK, s->spool.memlock_bytes);
	raise_limit(s, "core", RLIMIT_CORE, s->spool.core_bytes);
}

/* Asked to end by SIGABRT, ranks say where they stand; their memory, hundreds of GB on a node, is
 * not what was asked for. A limit of 1 ends dumps into files and into programs (core(5)). */
static void drop_core(pid_t pid)
{
	struct rlimit l;

	if (prlimit(pid, RLIMIT_CORE, NULL, &l) == 0 && l.rlim_max >= 1) {
		l.rlim_cur = 1;
		(void)prlimit(pid, RLIMIT_CORE, &l, NULL);
	}
}

void process_signal_ranks(struct stepd *s, int signal)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		if (s->ranks[i].pid <= 0)
			continue;
		if (signal == SIGABRT)
			drop_core(s->ranks[i].pid); /* not reaped yet: the pid is its own */
		syscall(SYS_pidfd_send_signal, s->ranks[i].pidfd.fd, signal, NULL, 0);
	}
}

static int keep_only(const int *fds, size_t n)
{
	int moved[PROCESS_FDS_MAX];

	for (size_t i = 0; i < n; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, PROCESS_FIRST_FD + (int)n);
		if (moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup3(moved[i], PROCESS_FIRST_FD + (int)i, O_CLOEXEC) < 0)
			return -errno;
	return syscall(SYS_close_range, (unsigned)PROCESS_FIRST_FD + (unsigned)n, ~0U, 0U) < 0
		       ? -errno
		       : 0;
}

/* It has nothing of ours but what it needs, above all not the step's lock, whose holder counts as
 * the supervisor. */
static _Noreturn void run_as(const struct process_work *w, pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	if (w->mnt_fd > 0 && w->user_fd <= 0 && setns(w->mnt_fd, CLONE_NEWNS) < 0)
		_exit(EINVAL);
	if (w->user_fd > 0 && mo_userns_become(w->user_fd, w->mnt_fd, w->who) < 0)
		_exit(EPERM);
	if (keep_only(w->fds, w->n_fds) < 0)
		_exit(EMFILE);
	if (w->apart)
		setsid();
	if (w->apart && sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		_exit(EINVAL);
	if (w->user_fd <= 0 && mo_identity_become(w->who) < 0)
		_exit(EPERM);
	/* after the change of user, which clears it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	w->run(w->arg);
	_exit(0);
}

pid_t process_as(const struct process_work *w)
{
	pid_t self = mo_proc_self();

	mo_assert(w->n_fds <= PROCESS_FDS_MAX);
	pid_t pid = fork();
	if (pid == 0)
		run_as(w, self);
	return pid < 0 ? -errno : pid;
}

pid_t process_exec(const struct child_plan *p)
{
	pid_t pid = fork();

	if (pid == 0)
		child_run(p);
	return pid < 0 ? -errno : pid;
}

static _Noreturn void run_program(const struct process_program *p)
{
	int fds[] = { fcntl(p->in_fd, F_DUPFD, PROCESS_FIRST_FD + 1),
		      fcntl(p->third_fd, F_DUPFD, PROCESS_FIRST_FD + 1) },
	    null = mo_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	sigset_t none;

	sigemptyset(&none);
	setsid();
	if (fds[0] < 0 || fds[1] < 0 || null < 0 || dup2(fds[0], STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    dup2(fds[1], PROCESS_FIRST_FD) < 0)
		_exit(1);
	if (syscall(SYS_close_range, (unsigned)PROCESS_FIRST_FD + 1, ~0U, 0U) < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0 || mo_identity_become(p->who) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	execv(p->path, p->argv);
	_exit(127);
}

pid_t process_program(const struct process_program *p)
{
	pid_t pid = fork();

	if (pid == 0)
		run_program(p);
	return pid < 0 ? -errno : pid;
}

int process_adopts_orphans(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

void process_kill(pid_t pid)
{
	kill(pid, SIGKILL);
}

int process_take_fd(pid_t pid, int fd)
{
	_cleanup_(mo_closep) int process = mo_proc_open(pid);
	long taken = process < 0 ? process : syscall(SYS_pidfd_getfd, process, fd, 0);

	return process < 0 ? process : taken < 0 ? -errno : (int)taken;
}

int process_pipe(int bytes, int *ret_read, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	if (bytes) /* refused above the user's quota: the default then */
		fcntl(ends[1], F_SETPIPE_SZ, bytes);
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) { /* a pipe has no other flag yet */
		int e = -errno;

		mo_close(ends[0]);
		mo_close(ends[1]);
		return e;
	}
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

int process_fifo(const char *path)
{
	int fd = mkfifo(path, 0600) < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int process_input(const char *text)
{
	_cleanup_(mo_closep) int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || mo_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return TAKE_FD(fd);
}
