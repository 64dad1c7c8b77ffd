/* See child.h. */
#include "daemon/child.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/assert.h"
#include "lib/base/proc.h"

#define NICE 10

struct child {
	pid_t pid; /* 0: it was taken */
	sd_event_source *source;
	child_ended ended;
	void *arg;
};

static _Noreturn void run(int (*work)(void *arg), void *arg, pid_t parent)
{
	const struct sched_param none = { 0 };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	/* the lock and all connections end with the parent, not with this */
	syscall(SYS_close_range, 3U, ~0U, 0U);
	/* a controller with real-time priority would wait for it */
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	mo_proc_go_first();
	_exit(-work(arg));
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata)
{
	struct child *c = userdata;
	child_ended ended = c->ended;
	void *arg = c->arg;

	mo_assert(c->pid > 0 && c->source == source);
	c->pid = 0;
	child_free(c);
	ended(arg, si->si_status, si->si_code != CLD_EXITED);
	return 0;
}

int child_start(sd_event *loop, int (*work)(void *arg), child_ended ended, void *arg,
		struct child **ret)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		run(work, arg, parent);
	if (pid < 0)
		return -errno;
	struct child *c = mo_alloc(sizeof(*c));
	*c = (struct child){ .pid = pid, .ended = ended, .arg = arg };
	int r = sd_event_add_child(loop, &c->source, pid, WEXITED, on_child, c);
	if (r < 0)
		child_free(c);
	else
		*ret = c;
	return r;
}

void child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
}

struct child *child_free(struct child *c)
{
	if (!c)
		return NULL;
	if (c->pid) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	sd_event_source_disable_unref(c->source);
	free(c);
	return NULL;
}
