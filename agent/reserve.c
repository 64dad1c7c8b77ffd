/* The next step's supervisor, started ahead of need where there is no systemd: exec and dynamic
 * linking are then no part of a launch. It is a moe-stepd that waits on a socket of ours for the
 * name of its step directory; it has no step, no lock and no file before. It ends when the
 * socket closes, so it never outlives its agent unused; once it has a step it is what every
 * stepd is, and the agent may die. One that is used or dead is replaced when the launch is over.
 * Nothing depends on it: without one, plain.c starts moe-stepd. */
#include "agent/reserve.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "agent/helper.h"
#include "agent/paths.h"
#include "agent/plain.h"
#include "agent/step_talk.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"

/* after a launch: the ranks' own start has the CPUs first */
#define FILL_AFTER_US 20000
#define REFILL_US 10000000 /* after one that died unused */
#define START_DEADLINE_US 20000000

/* One supervisor, and the start it was given. fd < 0: there is none. */
struct reserve {
	struct starter starter; /* first: the one is the other */
	struct manager *m;
	pid_t pid; /* 0: reaped */
	int fd;
	sd_event_source *source;
	int64_t job, attempt;   /* given away and not yet answered; 0 none */
	struct mo_timer *timer; /* none: when to start one; given away: its deadline */
};

static void let_go(struct reserve *v, int64_t next_in_us)
{
	v->source = sd_event_source_disable_unref(v->source);
	v->fd = mo_close(v->fd);
	v->job = v->attempt = 0;
	mo_timer_in(v->timer, next_in_us);
}

/* Its end is seen by its lock and its journal; here it is only reaped. */
static int on_child(sd_event_source *source, const siginfo_t *si, void *arg)
{
	struct reserve *v = arg;
	if (v->pid == si->si_pid)
		v->pid = 0;
	sd_event_source_set_floating(source, false);
	return 0;
}

static int on_word(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct reserve *v = arg;
	struct step_dir *d = step_dir_find(v->m, v->job, v->attempt);
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	let_go(v, n == 1 ? FILL_AFTER_US : REFILL_US);
	if (d && n == 1)
		step_talk_started(d, NULL);
	else if (d)
		plain_start(d); /* it died: whoever gets the lock runs the step */
	return 0;
}

static int spawn(struct reserve *v, int end)
{
	/* Room for the longest name of a step directory: stepd puts its own there, as processes
	 * are looked for by it. */
	_cleanup_(mo_freep) char *room = path_step(v->m->config, INT64_MAX, INT64_MAX);
	char *argv[] = { (char *)"moe-stepd", (char *)"--reserve", (char *)"--dir", room, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_adddup2(&actions, end, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETSID);
	int r = posix_spawn(&v->pid, v->m->stepd_path, &actions, &attr, argv, child_environment());
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static void fill(struct reserve *v)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	_cleanup_(mo_closep) int theirs = ends[1];
	v->fd = ends[0];
	if (spawn(v, theirs) < 0 ||
	    sd_event_add_child(v->m->loop, NULL, v->pid, WEXITED, on_child, v) < 0 ||
	    sd_event_add_io(v->m->loop, &v->source, v->fd, EPOLLIN, on_word, v) < 0)
		let_go(v, REFILL_US); /* a launch without it is only slower */
}

static void on_timer(void *arg)
{
	struct reserve *v = arg;
	struct step_dir *d = step_dir_find(v->m, v->job, v->attempt);
	if (v->fd < 0) {
		fill(v);
		return;
	}
	if (v->job <= 0)
		return;
	if (v->pid > 0)
		kill(v->pid, SIGKILL);
	let_go(v, REFILL_US);
	if (d)
		step_talk_started(d, "moe-stepd did not finish in time");
}

static bool take(struct reserve *v, const struct step_dir *d)
{
	size_t n = strlen(d->path);
	if (v->fd < 0 || v->job > 0 ||
	    send(v->fd, d->path, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
		return false;
	v->job = d->job;
	v->attempt = d->attempt;
	mo_timer_in(v->timer, START_DEADLINE_US);
	return true;
}

static void start(struct starter *s, struct step_dir *d)
{
	if (!take((struct reserve *)s, d))
		plain_start(d);
}

static void reserve_free(struct starter *s)
{
	struct reserve *v = (struct reserve *)s;

	sd_event_source_disable_unref(v->source);
	mo_close(v->fd);
	mo_timer_free(v->timer);
	free(v);
}

int reserve_starter_new(struct manager *m, struct starter **ret)
{
	struct reserve *v = mo_alloc(sizeof(*v));

	*v = (struct reserve){ .starter = { .start = start, .free = reserve_free },
			       .m = m,
			       .fd = -1 };
	if (mo_timer_new(m->loop, on_timer, v, &v->timer) < 0) {
		free(v);
		return -EIO;
	}
	mo_timer_in(v->timer, 0);
	*ret = &v->starter;
	return 0;
}
