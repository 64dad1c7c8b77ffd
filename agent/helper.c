/* See helper.h. */
#include "agent/helper.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#define STDERR_RETAINED 4096
#define ENVIRONMENT_MAX 10

struct helper {
	char *name;
	pid_t pid;
	struct mo_buf out, err;
	int fds[2]; /* stdout, stderr */
	sd_event_source *sources[2], *child;
	struct mo_timer *timer;
	size_t max_out;
	bool late, too_much, group;
	int status;
	helper_fn fn;
	void *arg;
	void (*ended)(void *arg);
	void *ended_arg; /* for one that was given up */
};

/* A list of its own, so that nothing of the agent's environment reaches helpers, stepd or ranks. */
char *const *child_environment(void)
{
	static char *list[ENVIRONMENT_MAX];
	static const char *const passed[] = { "MOE_DATA_DIR", "MOE_BOOT_ID",  "LD_LIBRARY_PATH",
					      "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS" };
	size_t n = 2;
	if (list[0])
		return list;
	list[0] = mo_strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	list[1] = mo_strdup("LANG=C.UTF-8");
	for (size_t i = 0; i < ELEMENTSOF(passed); i++)
		if (getenv(passed[i]))
			list[n++] = mo_printf("%s=%s", passed[i], getenv(passed[i]));
	return list;
}

static void close_stream(struct helper *h, int i)
{
	h->sources[i] = sd_event_source_disable_unref(h->sources[i]);
	h->fds[i] = mo_close(h->fds[i]);
}

static void destroy(struct helper *h)
{
	close_stream(h, 0);
	close_stream(h, 1);
	mo_timer_free(h->timer);
	sd_event_source_disable_unref(h->child);
	mo_buf_done(&h->out);
	mo_buf_done(&h->err);
	free(h->name);
	free(h);
}

static void end_child(const struct helper *h)
{
	kill(h->group ? -h->pid : h->pid, SIGKILL);
}

static void on_source_gone(void *arg)
{
	destroy(arg);
}

/* A child stuck in the kernel does not even die of SIGKILL: it is forgotten now, belongs to the
 * loop, and is reaped by on_child whenever it ends. */
struct helper *helper_free(struct helper *h)
{
	if (!h)
		return NULL;
	if (!h->child) {
		destroy(h);
		return NULL;
	}
	close_stream(h, 0);
	close_stream(h, 1);
	h->timer = mo_timer_free(h->timer);
	h->fn = NULL;
	end_child(h);
	sd_event_source *child = TAKE_PTR(h->child);
	sd_event_source_set_destroy_callback(child, on_source_gone);
	sd_event_source_set_floating(child, true);
	sd_event_source_unref(child);
	return NULL;
}

static char *problem_of(struct helper *h)
{
	const char *text = h->err.data ? h->err.data : "";
	size_t n = h->err.len;
	while (n > 0 && text[n - 1] == '\n')
		n--;
	size_t start = n;
	while (start > 0 && text[start - 1] != '\n')
		start--;
	if (h->late)
		return mo_printf("%s did not finish in time", h->name);
	if (h->too_much)
		return mo_printf("%s wrote more than %zu bytes", h->name, h->max_out);
	if (WIFSIGNALED(h->status))
		return mo_printf("%s was killed by signal %d%s%.*s", h->name, WTERMSIG(h->status),
				 start < n ? ": " : "", (int)(n - start), text + start);
	if (WEXITSTATUS(h->status) != 0)
		return start < n ? mo_strndup(text + start, n - start)
				 : mo_printf("%s ended with status %d", h->name,
					     WEXITSTATUS(h->status));
	return NULL;
}

static void read_stream(struct helper *h, int i)
{
	char chunk[16384];
	while (h->fds[i] >= 0) {
		ssize_t n = mo_read(h->fds[i], chunk, sizeof(chunk));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			close_stream(h, i);
			return;
		}
		if (i == 1) {
			mo_buf_add(&h->err, chunk, (size_t)n);
			if (h->err.len > STDERR_RETAINED)
				mo_buf_consume(&h->err, h->err.len - STDERR_RETAINED);
		} else if (h->out.len + (size_t)n <= h->max_out)
			mo_buf_add(&h->out, chunk, (size_t)n);
		else if (!h->too_much) {
			h->too_much = true;
			end_child(h);
		}
	}
}

static int on_output(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct helper *h = arg;
	read_stream(h, fd == h->fds[0] ? 0 : 1);
	return 0;
}

/* Its own children may still hold the pipes: what was written until it ended is what counts. */
static int on_child(sd_event_source *source, const siginfo_t *si, void *arg)
{
	struct helper *h = arg;
	if (!h->fn) { /* forgotten: the loop lets go of the source, and that of h */
		if (h->ended)
			h->ended(h->ended_arg);
		sd_event_source_set_floating(source, false);
		return 0;
	}
	h->status = si->si_code == CLD_EXITED ? si->si_status << 8 : si->si_status & 0x7f;
	read_stream(h, 0);
	read_stream(h, 1);
	_cleanup_(mo_freep) char *problem = problem_of(h);
	h->fn(h->arg, h->status, h->out.data ? h->out.data : "", h->out.len, problem);
	destroy(h);
	return 0;
}

static void on_deadline(void *arg)
{
	struct helper *h = arg;
	h->late = true;
	_cleanup_(mo_freep) char *problem = problem_of(h);
	h->fn(h->arg, SIGKILL, "", 0, problem);
	helper_free(h);
}

static int spawn(struct helper *h, const char *path, char *const *argv, int out, int err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, err, 2);
	/* libraries open sockets without CLOEXEC */
	posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setflags(&attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						(h->group ? POSIX_SPAWN_SETPGROUP : 0)));
	int r = posix_spawn(&h->pid, path, &actions, &attr, argv, child_environment());
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(sd_event *loop, const char *path, char *const *argv, bool group,
		 int64_t deadline_us, size_t max_out, helper_fn fn, void *arg, struct helper **ret)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	_cleanup_(mo_closep) int child_out = out[1];
	if (pipe2(err, O_CLOEXEC) < 0) {
		close(out[0]);
		return -errno;
	}
	_cleanup_(mo_closep) int child_err = err[1];
	struct helper *h = mo_alloc(sizeof(*h));
	*h = (struct helper){
		.fds = { out[0], err[0] }, .fn = fn, .arg = arg, .max_out = max_out, .group = group
	};
	const char *slash = strrchr(path, '/');
	h->name = mo_strdup(slash ? slash + 1 : path);
	int r = spawn(h, path, argv, child_out, child_err);
	if (r < 0) {
		helper_free(h);
		return r;
	}
	r = sd_event_add_child(loop, &h->child, h->pid, WEXITED, on_child, h);
	if (r < 0) {
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	for (int i = 0; i < 2 && r >= 0; i++) {
		int fl = fcntl(h->fds[i], F_GETFL);
		r = fl < 0 || fcntl(h->fds[i], F_SETFL, fl | O_NONBLOCK) < 0
			    ? -errno
			    : sd_event_add_io(loop, &h->sources[i], h->fds[i], EPOLLIN, on_output,
					      h);
	}
	if (r >= 0)
		r = mo_timer_new(loop, on_deadline, h, &h->timer);
	if (r < 0) {
		helper_free(h);
		return r;
	}
	mo_timer_in(h->timer, deadline_us);
	*ret = h;
	return 0;
}

int helper_start(sd_event *loop, const char *path, char *const *argv, int64_t deadline_us,
		 size_t max_out, helper_fn fn, void *arg, struct helper **ret)
{
	return start(loop, path, argv, false, deadline_us, max_out, fn, arg, ret);
}

int helper_start_group(sd_event *loop, const char *path, char *const *argv, int64_t deadline_us,
		       size_t max_out, helper_fn fn, void *arg, struct helper **ret)
{
	return start(loop, path, argv, true, deadline_us, max_out, fn, arg, ret);
}

bool helper_is_late(const struct helper *h)
{
	return h->late;
}

const char *helper_output(const struct helper *h, size_t *ret_n)
{
	*ret_n = h->out.len;
	return h->out.data ? h->out.data : "";
}

pid_t helper_pid(const struct helper *h)
{
	return h->pid;
}

void helper_on_end(struct helper *h, void (*fn)(void *arg), void *arg)
{
	h->ended = fn;
	h->ended_arg = arg;
}
