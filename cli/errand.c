/* See errand.h. */
#include "cli/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fd.h"

#define TEXT_MAX (64u << 20)

/* In the child. */
static void work_and_exit(int out, int (*work)(struct cli *cli, void *arg), struct cli *cli,
			  void *arg)
{
	_cleanup_(mo_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct sigaction plain = { .sa_handler = SIG_DFL };
	int r;

	sigaction(SIGINT, &plain, NULL);
	sigaction(SIGTERM, &plain, NULL);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(out, STDERR_FILENO) < 0)
		_exit(CLI_FAILED);
	r = work(cli, arg);
	fflush(stdout);
	_exit(r);
}

int errand_start(struct errand *e, int (*work)(struct cli *cli, void *arg), struct cli *cli,
		 void *arg)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	_cleanup_(mo_closep) int in = ends[0], out = ends[1];
	/* the child writes as much as there is */
	if (fcntl(out, F_SETFL, 0) < 0 || (e->pid = fork()) < 0) {
		e->pid = 0;
		return -errno;
	}
	if (e->pid == 0)
		work_and_exit(out, work, cli, arg);
	mo_buf_reset(&e->text);
	e->fd = TAKE_FD(in);
	return 0;
}

bool errand_read(struct errand *e, int *ret)
{
	char bytes[65536];
	ssize_t n;
	int status = 0;

	while ((n = read(e->fd, bytes, sizeof(bytes))) > 0 && e->text.len < TEXT_MAX)
		mo_buf_add(&e->text, bytes, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close(e->fd);
	(void)waitpid(e->pid, &status, 0); /* it closes the pipe by its end alone */
	e->pid = 0;
	*ret = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
	return true;
}

void errand_done(struct errand *e)
{
	if (e->pid > 0) {
		kill(e->pid, SIGKILL);
		(void)waitpid(e->pid, NULL, 0);
		close(e->fd);
	}
	mo_buf_done(&e->text);
	*e = (struct errand){ 0 };
}
