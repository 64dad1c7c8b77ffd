/* In place of agent/stepd/process.c: no process is made, but a row of the table that holds the
 * streams that a rank would. */
#include "agent/stepd/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#include "agent/stepd/child.h"
#include "agent/stepd/wake.h"
#include "lib/base/file.h"
#include "lib/base/proc.h"
#include "tests/unit/seams/stepd/bed.h"

static struct seam_rank ranks[16];
static size_t n_ranks;
static struct child_failure failure;
static bool ignoring;

struct seam_rank *seam_rank(size_t i)
{
	return i < n_ranks ? &ranks[i] : NULL;
}

void seam_exec_fails(int step, int error)
{
	failure = (struct child_failure){ step, error };
}

void seam_ranks_ignore(bool signals)
{
	ignoring = signals;
}

void seam_ranks_done(void)
{
	n_ranks = 0;
	ignoring = false;
	seam_exec_fails(0, 0);
}

int process_fork(struct stepd *s, struct rank *r, struct child_plan *p, source_fn on_report,
		 source_fn on_death)
{
	struct seam_process *child;
	int ours, theirs, pidfd, kept;

	if (!seam_acts())
		return -EAGAIN;
	assert_true(n_ranks < ELEMENTSOF(ranks));
	child = seam_process_new(0, NULL);
	seam_hold(child->fds[0] = p->out_fd);
	seam_hold(child->fds[1] = p->err_fd);
	ranks[n_ranks++] = (struct seam_rank){ child->pid, p->out_fd, p->err_fd };
	seam_pair(&ours, &theirs);
	seam_pair(&pidfd, &kept);
	child->pidfd = pidfd;
	child->pidfd_kept = kept;
	r->pid = child->pid;
	r->report = (struct source){ .fd = ours, .fn = on_report, .owner = r };
	r->pidfd = (struct source){ .fd = pidfd, .fn = on_death, .owner = r };
	wake_watch(s, &r->pidfd, EPOLLIN);
	wake_watch(s, &r->report, EPOLLIN);
	if (failure.error)
		mo_write(theirs, &failure, sizeof(failure));
	mo_close(theirs); /* exec, or its end */
	if (failure.error)
		seam_process_ends(child->pid, 127 << 8);
	return 0;
}

int process_adopts_orphans(void)
{
	return 0;
}

void process_raise_limits(struct stepd *s) {}

void process_signal_ranks(struct stepd *s, int signal)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct seam_process *p = s->ranks[i].pid > 0 ? seam_process(s->ranks[i].pid) : NULL;

		if (!p || !seam_acts())
			continue;
		if (signal == SIGKILL)
			mo_proc_kill(p->pid, p->pid);
		else
			p->signalled = signal;
		if (signal != SIGKILL && !ignoring)
			seam_process_ends(p->pid, signal);
	}
}

pid_t process_as(const struct process_work *w)
{
	return -ENOSYS;
}

pid_t process_exec(const struct child_plan *p)
{
	return -ENOSYS;
}

pid_t process_program(const struct process_program *p)
{
	return -ENOSYS;
}

void process_kill(pid_t pid)
{
	fail_msg("nobody is killed by number here");
}

int process_take_fd(pid_t pid, int fd)
{
	return -EBADF;
}

int process_pipe(int bytes, int *ret_read, int *ret_write)
{
	seam_pair(ret_read, ret_write);
	return 0;
}

int process_fifo(const char *path)
{
	return -ENOSYS;
}

int process_input(const char *text)
{
	return -ENOSYS;
}
