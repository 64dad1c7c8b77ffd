/* See errand.h. */
#include "daemon/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/base/util.h"
#include "lib/loop/loop.h"

#define OUTPUT_MAX (1u << 20)

struct errand {
	errand_ended ended;
	void *arg;
	pid_t pid; /* 0: it was taken */
	int in, out;
	bool late;
	sd_event_source *child;
	struct mo_timer *timer;
};

struct errand *errand_free(struct errand *e)
{
	if (!e)
		return NULL;
	sd_event_source_disable_unref(e->child);
	mo_timer_free(e->timer);
	if (e->pid > 0) {
		kill(-e->pid, SIGKILL);
		waitpid(e->pid, NULL, 0);
	}
	mo_close(e->in);
	mo_close(e->out);
	free(e);
	return NULL;
}

static int on_exit_status(sd_event_source *s, const siginfo_t *si, void *userdata)
{
	struct errand *e = userdata;
	_cleanup_(mo_closep) int out = e->out;
	const struct errand_end end = { .late = e->late,
					.exited = si->si_code == CLD_EXITED,
					.status = si->si_status,
					.out = out };
	errand_ended ended = e->ended;
	void *arg = e->arg;

	/* reaped by the event loop; what it left behind goes too */
	kill(-e->pid, SIGKILL);
	e->pid = 0;
	e->out = -1;
	(void)lseek(out, 0, SEEK_SET);
	errand_free(e);
	ended(arg, &end);
	return 0;
}

static void on_time(void *arg)
{
	struct errand *e = arg;

	e->late = true;
	kill(-e->pid, SIGKILL);
}

static int spawn(struct errand *e, const struct errand_call *call)
{
	const struct rlimit output = { OUTPUT_MAX, OUTPUT_MAX };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	if (e->in >= 0)
		posix_spawn_file_actions_adddup2(&files, e->in, 0);
	else
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, e->out, 1);
	posix_spawn_file_actions_adddup2(&files, e->out, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETPGROUP);
	int r = -posix_spawn(&e->pid, call->program, &files, &attr, call->argv, call->env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (r < 0) {
		e->pid = 0;
		return r;
	}
	prlimit(e->pid, RLIMIT_FSIZE, &output, NULL);
	return 0;
}

static int memory_file(const char *data, size_t n, int *ret)
{
	*ret = memfd_create("errand", MFD_CLOEXEC);
	if (*ret < 0)
		return -errno;
	int r = mo_write_all(*ret, data, n);
	return r < 0 ? r : lseek(*ret, 0, SEEK_SET) < 0 ? -errno : 0;
}

int errand_start(sd_event *loop, const struct errand_call *call, errand_ended ended, void *arg,
		 struct errand **ret)
{
	struct errand *e = mo_alloc(sizeof(*e));

	assert(call->program && call->argv && call->env && call->time_us > 0);
	*e = (struct errand){ .ended = ended, .arg = arg, .in = -1, .out = -1 };
	int r = call->input ? memory_file(call->input, call->n_input, &e->in) : 0;
	if (r >= 0)
		r = memory_file(NULL, 0, &e->out);
	if (r >= 0)
		r = mo_timer_new(loop, on_time, e, &e->timer);
	if (r >= 0)
		r = spawn(e, call);
	if (r >= 0)
		r = sd_event_add_child(loop, &e->child, e->pid, WEXITED, on_exit_status, e);
	if (r < 0) {
		errand_free(e);
		return r;
	}
	mo_timer_in(e->timer, call->time_us);
	*ret = e;
	return 0;
}
