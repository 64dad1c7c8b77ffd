/* Where each save of the job writes over the last one (launch.keep), moe-ckpt keeps a copy of
 * the last whole one while the ranks run. It is a process of its own, as the job's user: the
 * files lie on his file systems, and a copy takes its time. It ends when the other end of its
 * standard input closes, with this process, and is killed with the step. What it saw whole it
 * tells the first rank's notify socket. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/stepd/keeper.h"
#include "agent/stepd/heartbeat.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/model/message.h"
#include "lib/wire/encode.h"

#define NOTIFY_FD 3

/* moe-ckpt lies beside this program; NULL when that cannot be said. */
static char *helper(void)
{
	char self[4096];
	ssize_t n = mo_readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	if (n <= 0)
		return NULL;
	self[n] = 0;
	slash = strrchr(self, '/');
	return slash ? mo_printf("%.*s/moe-ckpt", (int)(slash - self), self) : NULL;
}

static char *order_of(const struct launch *l)
{
	struct mo_buf text = { 0 };
	struct command c;
	mo_desc_init(&command_desc, &c);
	c.kind = CMD_SCAN;
	c.dir = mo_strdup(l->checkpoint_dir);
	c.layout = mo_desc_dup(&ckpt_layout_desc, l->keep);
	wire_encode(&command_desc, &c, &text);
	mo_desc_done(&command_desc, &c);
	return mo_buf_take(&text);
}

static _Noreturn void run(const struct stepd *s, const char *path, char *order, int life,
			  int socket)
{
	char *argv[] = { (char *)"moe-ckpt", (char *)"--keep", order,
			 s->spool.launch.resume >= 0 ? (char *)"--resumed" : NULL, NULL };
	int fds[] = { fcntl(life, F_DUPFD, NOTIFY_FD + 1), fcntl(socket, F_DUPFD, NOTIFY_FD + 1) },
	    null = mo_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);
	sigset_t none;
	sigemptyset(&none);
	setsid();
	if (fds[0] < 0 || fds[1] < 0 || null < 0 || dup2(fds[0], STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
	    dup2(fds[1], NOTIFY_FD) < 0)
		_exit(1);
	if (syscall(SYS_close_range, (unsigned)NOTIFY_FD + 1, ~0U, 0U) < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0 || mo_identity_become(&s->who) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	execv(path, argv);
	_exit(127);
}

void keeper_start(struct stepd *s)
{
	const struct launch *l = &s->spool.launch;
	int life[2];
	if (!l->keep || !l->checkpoint_dir || pipe2(life, O_CLOEXEC) < 0)
		return;
	_cleanup_(mo_freep) char *path = helper(), *order = order_of(l);
	_cleanup_(mo_closep) int socket = notify_connect(s, s->ranks[0].rank);
	pid_t pid = path && socket >= 0 ? fork() : -1;
	if (pid == 0)
		run(s, path, order, life[0], socket);
	mo_close(life[0]);
	s->keeper_fd = life[1];
	if (pid < 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "no copies are kept of what each save of the job writes over: %s",
		       strerror(errno));
}
