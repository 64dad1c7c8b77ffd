/* moe-stepd --dir STEPDIR: started by moe-agent, see stepd.h. Under systemd (NOTIFY_SOCKET is
 * set) it stays in the foreground and says READY=1; else it leaves its starter by a double fork
 * and the starter exits 0 once the step's socket answers. With --reserve the name of the
 * directory comes later, over the socket that is descriptor 0, which closes when no step comes
 * and gets one byte once the step's socket answers (agent/reserve.c). Whoever does not get the
 * lock exits without a word: another stepd has the step. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent/stepd/begin.h"
#include "agent/stepd/loop.h"
#include "agent/stepd/process.h"
#include "agent/stepd/stepd.h"
#include "agent/stepd/tree.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"

static void sd_ready(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	if (n == 0 || n >= sizeof(a.sun_path))
		return;
	memcpy(a.sun_path, path, n);
	if (path[0] == '@')
		a.sun_path[0] = '\0';
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&a,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

/* Descriptors 0 and 1 on /dev/null, 2 on the step's own log. */
static int own_descriptors(struct stepd *s)
{
	_cleanup_(mo_closep) int null = mo_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	_cleanup_(mo_closep) int log =
		mo_open_at(s->dir_fd, "stepd.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (null < 0 || log < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0)
		return -errno;
	return 0;
}

static int serve(struct stepd *s, int ready_fd)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	mo_log_open("moe-stepd", MO_NOTICE);
	int r = process_adopts_orphans();
	if (r < 0)
		mo_error_set(&err, r, "subreaper: %s", strerror(-r));
	else
		r = stepd_open(s, &err);
	if (r == 0) {
		sd_ready();
		if (ready_fd >= 0 && mo_write(ready_fd, "1", 1) != 1)
			mo_log(MO_WARNING, NULL, NULL, "%s: the starter has gone", s->dir);
		mo_close(ready_fd);
		r = stepd_run(s, &err);
	}
	if (r < 0)
		mo_log(MO_ERR, NULL, NULL, "%s", mo_error_text(&err, r));
	if (s->core)
		tree_close(s);
	return r < 0 ? 1 : 0;
}

static int start_detached(struct stepd *s)
{
	int ready[2];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return 1;
	pid_t pid = fork();
	if (pid < 0)
		return 1;
	if (pid > 0) {
		char c;
		close(ready[1]);
		return mo_read(ready[0], &c, 1) == 1 ? 0 : 1;
	}
	close(ready[0]);
	if (setsid() < 0 || own_descriptors(s) < 0)
		return 1;
	return serve(s, ready[1]);
}

/* The memory that a start takes is there before it is waited for: a page fault costs more than
 * what is written to the page. So are the libraries of accounts. */
static void warm_up(void)
{
	const size_t bytes = 256 * 1024;
	mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
	mallopt(M_TRIM_THRESHOLD, 4 * 1024 * 1024);
	char *memory = mo_alloc(bytes);
	memset(memory, 1, bytes);
	free(memory);
	/* opens the system's way to its accounts, which are asked again when the step is known */
	getpwuid(mo_uid());
}

/* Waits for the name of the step and writes it over the argument, so that this process is found
 * by it. Returns what answers the agent, or a negative errno: no step comes. */
static int await_step(char *dir)
{
	size_t room = strlen(dir);
	_cleanup_(mo_closep) int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
	char name[PATH_MAX];
	if (fd < 0)
		return -errno;
	warm_up();
	ssize_t n = recv(fd, name, sizeof(name), MSG_TRUNC);
	if (n <= 0 || (size_t)n > room)
		return n == 0 ? -ECANCELED : -EINVAL;
	memset(dir, 0, room);
	memcpy(dir, name, (size_t)n);
	return TAKE_FD(fd);
}

int main(int argc, char *argv[])
{
	static const struct option longs[] = { { "dir", required_argument, NULL, 'd' },
					       { "reserve", no_argument, NULL, 'r' },
					       { "version", no_argument, NULL, 'v' },
					       { 0 } };
	static struct stepd s;
	int c, ready_fd = -1;
	char *dir = NULL;
	bool reserve = false;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'v') {
			printf("moe-stepd %s\n", MO_VERSION);
			return 0;
		}
		if (c == 'd')
			dir = optarg;
		else if (c == 'r')
			reserve = true;
		else
			return 2;
	}
	if (!dir || optind < argc) {
		fprintf(stderr, "usage: moe-stepd --dir STEPDIR (it is started by moe-agent)\n");
		return 2;
	}
	umask(077);
	syscall(SYS_close_range, 3U, ~0U, 0U); /* whatever the starter forgot to close */
	stepd_init(&s);
	if (reserve && (ready_fd = await_step(dir)) < 0)
		return ready_fd == -ECANCELED ? 0 : 1;
	s.dir = dir;
	s.dir_fd = mo_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	if (s.dir_fd < 0) {
		fprintf(stderr, "moe-stepd: %s: %s\n", s.dir, strerror(errno));
		return 1;
	}
	_cleanup_(mo_freep) char *lock = mo_path(s.dir, "lock");
	s.lock_fd = mo_lock_file(lock);
	if (s.lock_fd < 0)
		return s.lock_fd == -EWOULDBLOCK ? 0 : 1;
	if (reserve)
		return own_descriptors(&s) < 0 ? 1 : serve(&s, ready_fd);
	return getenv("NOTIFY_SOCKET") ? serve(&s, -1) : start_detached(&s);
}
