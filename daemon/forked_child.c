/* See forked_child.h. */
#include "daemon/forked_child.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/encode.h"

#define NICE 10

int forked_status(int fd, int status)
{
	_cleanup_(mo_freep) char *line = mo_printf("%03d\n", status);

	return mo_write_all(fd, line, FORKED_STATUS_BYTES);
}

int forked_problem(int fd, int status, const char *detail)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = forked_status(fd, status);

	wire_problem(status, detail, &b);
	return r < 0 ? r : mo_write_all(fd, b.data, b.len);
}

/* The memory that counts is what is mapped for writing; what the parent had is shared with it,
 * and does not. */
static void limit_itself(const struct forked_limits *k)
{
	const struct rlimit core = { 0, 0 }, cpu = { k->cpu_s, k->cpu_s + 1 };

	setrlimit(RLIMIT_CORE, &core);
	if (k->cpu_s)
		setrlimit(RLIMIT_CPU, &cpu);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is larger */
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int64_t data;

	if (!k->memory || mo_read_file("/proc/self/statm", 4096, &text) < 0)
		return;
	char *rest = text.data, *word = NULL;
	for (int i = 0; i < 6 && rest; i++)
		word = strsep(&rest, " ");
	if (!word || mo_parse_i64(word, 0, INT64_MAX >> 16, &data) < 0)
		return;
	const rlim_t most = (rlim_t)data * (rlim_t)sysconf(_SC_PAGESIZE) + k->memory;
	setrlimit(RLIMIT_DATA, &(struct rlimit){ most, most });
#endif
}

/* Connections, the lock and the database end with the parent, not with this: only the pipe
 * stays, and where errors are written. */
static int keep_only(int fd)
{
	int to = STDERR_FILENO + 1;

	if (fd != to && dup2(fd, to) < 0)
		return -errno;
	syscall(SYS_close_range, (unsigned)to + 1, ~0U, 0U);
	return to;
}

void forked_child(const struct manager *m, const struct forked_work *w,
		  const struct forked_limits *limits, pid_t parent, int fd)
{
	const struct sigaction ends = { .sa_handler = SIG_DFL };
	const struct sched_param none = { 0 };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(ESRCH);
	sigaction(SIGPIPE, &ends, NULL);
	/* a controller with real-time priority would wait for it */
	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	fd = keep_only(fd);
	if (fd < 0)
		_exit(-fd);
	limit_itself(limits);
	_exit(-w->run(m, w->arg, fd));
}
