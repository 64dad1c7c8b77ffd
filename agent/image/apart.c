/* See apart.h. */
#include "agent/image/apart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/image/failure.h"
#include "lib/base/proc.h"

static int do_part(const char *what, pid_t parent, apart_fn part, const void *arg)
{
	struct mo_error why = { 0 };
	int r = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ? -ECHILD
									    : part(arg, &why);

	return r < 0 ? failure_told(what, r, &why) : r > 0 ? APART_MORE : 0;
}

int apart(const char *what, apart_fn part, const void *arg, struct mo_error *err)
{
	pid_t parent = mo_proc_self();
	siginfo_t end = { 0 };

	fflush(stdout);
	pid_t pid = fork();

	if (pid < 0)
		return mo_error_set(err, -errno, "no process can be started: %s", strerror(errno));
	if (pid == 0) {
		int r = do_part(what, parent, part, arg);

		fflush(stdout);
		_exit(r);
	}
	int r = mo_proc_wait(P_PID, pid, &end, WEXITED);

	if (r == 0 && end.si_code != CLD_EXITED)
		return mo_error_set(err, -EIO, "it was killed by signal %d", end.si_status);
	return r < 0 ? mo_error_set(err, r, "it was lost: %s", strerror(-r)) : end.si_status;
}
