/* See process.h. */
#include "agent/stepd/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/stepd/child.h"
#include "agent/stepd/sources.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

/* Born in the ranks' cgroup where the kernel can (Linux 5.7): moving a process costs an RCU
 * grace period, 10 to 50 ms. Else the child moves itself. glibc's fork() does nothing that a
 * child which only execs needs. */
static pid_t fork_in_cgroup(struct stepd *s, struct child_plan *p)
{
	struct clone_args a = { .flags = CLONE_INTO_CGROUP,
				.exit_signal = SIGCHLD,
				.cgroup = (uint64_t)s->cgroup_fd };
	int procs_fd = TAKE_FD(p->cgroup_fd);
	pid_t pid = s->cgroup_fd >= 0 ? (pid_t)syscall(SYS_clone3, &a, sizeof(a)) : -1;
	if (pid >= 0)
		return pid;
	p->cgroup_fd = procs_fd;
	return fork();
}

int process_fork(struct stepd *s, struct rank *r, struct child_plan *p, source_fn on_report,
		 source_fn on_death)
{
	int report[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(mo_closep) int child_end = report[1];
	r->report = (struct source){ .fd = report[0], .fn = on_report, .owner = r };
	p->report_fd = child_end;
	pid_t pid = fork_in_cgroup(s, p);
	if (pid == 0)
		child_run(p);
	if (pid < 0) {
		int e = -errno;
		stepd_unwatch(s, &r->report);
		return e;
	}
	r->pid = pid;
	r->pidfd = (struct source){ .fd = (int)syscall(SYS_pidfd_open, pid, 0),
				    .fn = on_death,
				    .owner = r };
	int fl = fcntl(r->report.fd, F_GETFL);
	if (r->pidfd.fd < 0 || fl < 0 || fcntl(r->report.fd, F_SETFL, fl | O_NONBLOCK) < 0)
		return -errno;
	int e = stepd_watch(s, &r->pidfd, EPOLLIN);
	return e < 0 ? e : stepd_watch(s, &r->report, EPOLLIN);
}

static void raise_limit(struct stepd *s, const char *name, __rlimit_resource_t which,
			int64_t wanted)
{
	struct rlimit now, want;
	if (wanted == MO_NONE || getrlimit(which, &now) < 0)
		return;
	rlim_t v = wanted < 0 ? RLIM_INFINITY : (rlim_t)wanted;
	want = (struct rlimit){ .rlim_cur = v, .rlim_max = v };
	if (setrlimit(which, &want) == 0)
		return;
	want = (struct rlimit){ .rlim_cur = MO_MIN(v, now.rlim_max), .rlim_max = now.rlim_max };
	setrlimit(which, &want);
	/* it has a ceiling everywhere */
	bool as_high_as_possible = wanted < 0 && which == RLIMIT_NOFILE;
	/* read back: a limit that was silently not raised fails much later, in RDMA */
	if (getrlimit(which, &now) == 0 && now.rlim_cur < v && !as_high_as_possible)
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "limit %s is %lld instead of the configured value: the agent may not raise "
		       "it; raise it in the agent's unit",
		       name, (long long)now.rlim_cur);
}

void process_raise_limits(struct stepd *s)
{
	raise_limit(s, "nofile", RLIMIT_NOFILE, s->spool.nofile);
	raise_limit(s, "memlock", RLIMIT_MEMLOCK, s->spool.memlock_bytes);
	raise_limit(s, "core", RLIMIT_CORE, s->spool.core_bytes);
}

void process_signal_ranks(struct stepd *s, int signal)
{
	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].pid > 0)
			syscall(SYS_pidfd_send_signal, s->ranks[i].pidfd.fd, signal, NULL, 0);
}
