/* Steps of a local cluster: found, ended, proved gone, and the cluster brought down with them. */
#include "cli/local_steps.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/interrupt.h"
#include "cli/local_proc.h"
#include "cli/options.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define CMDLINE_MAX 65536
#define RESERVE "j9223372036854775807.a9223372036854775807"

void local_steps_done(struct local_steps *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->items[i].node);
		free(s->items[i].dir);
		free(s->items[i].step_id);
		mo_close(s->items[i].fd);
	}
	free(s->items);
	*s = (struct local_steps){ 0 };
}

/* Connects to the supervisor; -1 when it does not listen. Through /proc: a long directory must
 * not exceed sun_path. */
static int stepd_connect(const char *dir)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_(mo_closep) int d = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC),
				 fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/sock", d);
	if (d < 0 || fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return TAKE_FD(fd);
}

/* Who answers on the step's socket: the kernel's word, so a hung supervisor is named as well. */
static pid_t stepd_pid(const char *dir)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);
	_cleanup_(mo_closep) int fd = stepd_connect(dir);
	_cleanup_(mo_freep) char *lock = mo_path(dir, "lock");
	if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
	    local_alive(peer.pid, -1))
		return peer.pid;
	return local_lock_holder(lock);
}

static void step_read(const char *dir, const char *node, const char *name, struct local_steps *ret)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "launch.json"), *job_word = NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *dot = strstr(name, ".a");
	int64_t job, attempt;
	if (name[0] != 'j' || !dot)
		return;
	job_word = mo_strndup(name + 1, (size_t)(dot - name - 1));
	if (mo_parse_i64(job_word, 0, INT64_MAX, &job) < 0 ||
	    mo_parse_i64(dot + 2, 0, INT64_MAX, &attempt) < 0)
		return;
	struct local_step *s = MO_GROW(ret->items, ret->n);
	*s = (struct local_step){ .job = job,
				  .attempt = attempt,
				  .node = mo_strdup(node),
				  .dir = mo_strdup(dir),
				  .pid = stepd_pid(dir),
				  .fd = -1 };
	struct mo_proc p;
	s->pid_start = s->pid && mo_proc_read(s->pid, &p) == 0 ? p.start_time : -1;
	if (mo_read_file(path, 64u << 20, &b) == 0 && b.data) {
		struct json_object *doc = json_tokener_parse(b.data);
		s->step_id = mo_strdup(js_str(doc, "step_id"));
		json_object_put(doc);
	}
}

void local_steps(const struct local *l, struct local_steps *ret)
{
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i),
					 *steps = local_path(l, "run/%s/steps", node);
		DIR *d = opendir(steps);
		if (!d)
			continue;
		for (struct dirent *e; (e = readdir(d));) {
			_cleanup_(mo_freep) char *dir = mo_path(steps, "%s", e->d_name);
			step_read(dir, node, e->d_name, ret);
		}
		closedir(d);
	}
}

struct left {
	const struct local *local;
	const char *mark;
	const struct local_steps *steps;
	bool kill;
	size_t n;
};

/* The supervisor that an agent keeps for its next step (agent/reserve.c) has no mark and no step;
 * it ends a moment after its agent. */
static bool is_reserve(const struct local *l, pid_t pid)
{
	static const char words[] = "moe-stepd\0--reserve\0--dir\0"; /* the directory follows */
	const size_t n = sizeof(words) - 1;
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/cmdline", (int)pid);
	_cleanup_(mo_buf_done) struct mo_buf line = { 0 };

	if (mo_read_file(path, CMDLINE_MAX, &line) < 0 || line.len <= n ||
	    memcmp(line.data, words, n) != 0)
		return false;
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i);
		_cleanup_(mo_freep) char *room = local_path(l, "run/%s/steps/" RESERVE, node);
		if (strncmp(line.data + n, room, line.len - n) == 0)
			return true;
	}
	return false;
}

static int count_left(void *arg, pid_t pid)
{
	struct left *w = arg;
	struct mo_proc p;
	bool ours =
		pid != getpid() && mo_proc_read(pid, &p) == 0 && p.state != 'Z' && p.state != 'X';
	if (!ours)
		return 0;
	ours = mo_proc_has_env(pid, w->mark) || is_reserve(w->local, pid);
	for (size_t i = 0; i < w->steps->n && !ours; i++) {
		_cleanup_(mo_freep) char *step =
			w->steps->items[i].step_id
				? mo_printf("MOE_STEP=%s", w->steps->items[i].step_id)
				: NULL;
		ours = step && mo_proc_has_env(pid, step);
	}
	w->n += ours;
	if (ours && w->kill)
		mo_proc_kill(pid, p.start_time);
	return 0;
}

/* Supervisors carry no mark. One lives until it reaped all of its ranks: a rank that is stuck in
 * a driver's exit has no environment left to be found by. */
static size_t supervisors_left(const struct local_steps *steps, bool kill_them)
{
	size_t n = 0;
	for (size_t i = 0; i < steps->n; i++) {
		const struct local_step *s = &steps->items[i];
		if (!s->pid || !local_alive(s->pid, s->pid_start))
			continue;
		n++;
		if (kill_them)
			mo_proc_kill(s->pid, s->pid_start);
	}
	return n;
}

size_t local_kill_steps(const struct local *l, int64_t wait_ms)
{
	_cleanup_(local_steps_done) struct local_steps steps = { 0 };
	_cleanup_(mo_freep) char *mark = mo_printf("MOE_LOCAL=%s", l->dir);
	int64_t end = mo_clock_boot_us() + wait_ms * 1000,
		gentle_until = mo_clock_boot_us() + wait_ms * 500;
	local_steps(l, &steps);
	/* The supervisor first: it kills its ranks and writes how they ended. The connection
	 * stays: one that is closed again at once may be dropped unread. */
	for (size_t i = 0; i < steps.n; i++) {
		steps.items[i].fd = stepd_connect(steps.items[i].dir);
		if (steps.items[i].fd >= 0)
			(void)send(steps.items[i].fd, "{\"cmd\":\"kill\"}\n", 15, MSG_NOSIGNAL);
	}
	for (;;) {
		bool force = mo_clock_boot_us() > gentle_until;
		struct left left = { .local = l, .mark = mark, .steps = &steps, .kill = force };
		mo_proc_each(count_left, &left);
		/* ranks first: what they leave is the supervisor's to reap */
		left.n += supervisors_left(&steps, left.kill && !left.n);
		if (!left.n || mo_clock_boot_us() > end)
			return left.n;
		interrupt_wait(20);
	}
}

/* One daemon; its name is added to crashed when a signal ended it before it had stopped. */
static bool stop_daemon(const struct local *l, const char *name, int64_t wait_ms,
			struct mo_buf *crashed)
{
	int signal = 0;
	bool gone = local_stop(l, name, wait_ms, &signal);
	if (signal)
		mo_buf_printf(crashed, "%s%s (signal %d, %s)", crashed->len ? ", " : "", name,
			      signal, strsignal(signal));
	return gone;
}

int local_down(struct cli *cli, struct local *l)
{
	_cleanup_(mo_buf_done) struct mo_buf crashed = { 0 };
	bool moed = stop_daemon(l, "moed", 10000, &crashed), agents = true;
	for (int64_t i = 0; i < l->nodes; i++) {
		_cleanup_(mo_freep) char *node = local_node(l, i);
		agents = stop_daemon(l, node, 5000, &crashed) && agents;
	}
	size_t left = local_kill_steps(l, 10000);
	if (!moed || !agents || left)
		return cli_fail(CLI_FAILED,
				"local down: %zu processes of %s are still there, perhaps stuck in "
				"the kernel; run it again, or find them by MOE_LOCAL=%s in "
				"/proc/*/environ",
				left + !moed + !agents, l->dir, l->dir);
	if (crashed.len)
		return cli_fail(CLI_FAILED,
				"local down: %s: crashed while it was stopped; nothing is left "
				"running, and what was acknowledged is stored; report it with "
				"%s/log",
				crashed.data, l->dir);
	return CLI_OK;
}
