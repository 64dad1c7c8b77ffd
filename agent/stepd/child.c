/* See child.h. From child_run on: no allocation, no stdio, no locks; each step is checked and a
 * failure goes to the parent as {step, errno}. */
#include "agent/stepd/child.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/userns.h"

const char *const child_step_names[_CHILD_STEP_N] = {
	"start",
	"join the cgroup",
	"reset signals",
	"enter the step's mount namespace",
	"become the user",
	"bind its life to the supervisor",
	"enter the working directory",
	"bind to its CPUs",
	"set the memory policy",
	"set up descriptors",
	"execute",
};

char *child_problem(const struct child_failure *f, const char *object)
{
	int step = f->step > CHILD_NONE && f->step < _CHILD_STEP_N ? f->step : CHILD_NONE;
	char *found = child_found_problem(&f->found, object);

	return found ? found
		     : mo_printf("could not %s%s%s: %s", child_step_names[step], *object ? " " : "",
				 object, strerror(f->error));
}

static _Noreturn void fail(const struct child_plan *p, enum child_step step, int error)
{
	struct child_failure f = { .step = (int32_t)step, .error = (int32_t)error };

	if (step == CHILD_EXEC && p->in_image)
		child_look(p, &f.found);
	ssize_t n = mo_write(p->report_fd, &f, sizeof(f));
	_exit(n == sizeof(f) ? 127 : 126);
}

static void reset_signals(const struct child_plan *p)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &dfl, NULL); /* KILL, STOP and libc's own are refused: fine */
	sigset_t none;
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		fail(p, CHILD_SIGNALS, errno);
}

/* 0, 1, 2, perhaps 3, and behind them the report, which ends with the exec. */
static void place_descriptors(struct child_plan *p)
{
	int last = p->root_fd > 0 ? 4 : 3;
	int root = p->root_fd > 0 ? fcntl(p->root_fd, F_DUPFD_CLOEXEC, last + 1) : 0;

	if (root < 0 || dup2(p->in_fd, 0) < 0 || dup2(p->out_fd, 1) < 0 || dup2(p->err_fd, 2) < 0)
		fail(p, CHILD_DESCRIPTORS, errno);
	if (p->report_fd != last) {
		if (dup3(p->report_fd, last, O_CLOEXEC) < 0)
			fail(p, CHILD_DESCRIPTORS, errno);
		p->report_fd = last;
	}
	if ((root > 0 && dup2(root, 3) < 0) ||
	    syscall(SYS_close_range, (unsigned)last + 1, ~0U, 0U) < 0)
		fail(p, CHILD_DESCRIPTORS, errno);
}

static _Noreturn void execute(const struct child_plan *p)
{
	int error = ENOENT;
	for (char *const *path = p->candidates; *path; path++) {
		execve(*path, p->argv, p->envp);
		if (errno == EACCES)
			error = EACCES; /* as execvp: reported only if no later candidate works */
		else if (errno != ENOENT && errno != ENOTDIR)
			fail(p, CHILD_EXEC, errno);
	}
	fail(p, CHILD_EXEC, error);
}

/* Linux before 5.15 knows no preference of several nodes: then the first of them. */
static int set_memory(const struct child_plan *p)
{
	long r = syscall(SYS_set_mempolicy, p->mem_policy, p->mem_nodes, p->mem_bits);
	if (r < 0 && errno == EINVAL && p->mem_policy == MPOL_PREFERRED_MANY)
		r = syscall(SYS_set_mempolicy, MPOL_PREFERRED, p->mem_nodes, p->mem_bits);
	return (int)r;
}

/* Checked and read back: a drop that failed never ends in an exec (CVE-2019-19728). */
static void become(const struct child_plan *p)
{
	int e;

	if (p->user_fd > 0 && p->mnt_fd >= 0) {
		e = mo_userns_become(p->user_fd, p->mnt_fd, p->who);
	} else {
		/* as who may: the user may not; its root and directory are the namespace's then */
		if (p->mnt_fd >= 0 && setns(p->mnt_fd, CLONE_NEWNS) < 0)
			fail(p, CHILD_NAMESPACE, errno);
		e = mo_identity_become(p->who);
	}
	if (e < 0)
		fail(p, CHILD_USER, -e);
}

_Noreturn void child_run(const struct child_plan *plan)
{
	struct child_plan own = *plan, *p = &own;
	setsid(); /* a rank that signals its group must not reach its peers */
	if (p->cgroup_fd >= 0 && mo_write(p->cgroup_fd, "0\n", 2) != 2)
		fail(p, CHILD_CGROUP, errno);
	reset_signals(p);
	become(p);
	/* no program that it runs makes it another user: sudo, a set-user-id file of a mount */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail(p, CHILD_USER, errno);
	/* After the change of user, which clears it; then the parent may have died before it was
	 * set. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		fail(p, CHILD_PARENT, errno);
	if (getppid() != p->parent)
		fail(p, CHILD_PARENT, ESRCH);
	umask(022);
	/* as login does for who has no home */
	if (chdir(p->workdir) < 0 && (!p->is_home || errno != ENOENT || chdir("/") < 0))
		fail(p, CHILD_WORKDIR, errno);
	if (p->cpus && sched_setaffinity(0, p->cpus_size, p->cpus) < 0)
		fail(p, CHILD_AFFINITY, errno);
	if (p->mem_policy >= 0 && set_memory(p) < 0)
		fail(p, CHILD_MEMORY, errno);
	place_descriptors(p);
	execute(p);
}
