/* Processes of a local cluster: start detached, find again, stop, and prove that none is left
 * (local.c). */
#include "cli/local_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/client.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define PROC_LOCKS_MAX (16u << 20)
#define CMDLINE_MAX 65536
#define RESERVE "j9223372036854775807.a9223372036854775807"

/* A zombie is dead: where nobody reaps orphans (containers) killed daemons stay as zombies for
 * ever. */
static bool alive(pid_t pid, int64_t start_time)
{
	struct mo_proc p;
	return pid > 0 && mo_proc_read(pid, &p) == 0 && p.state != 'Z' && p.state != 'X' &&
	       (start_time < 0 || p.start_time == start_time);
}

bool local_ended(pid_t pid)
{
	int status;
	return waitpid(pid, &status, WNOHANG) == pid || !alive(pid, -1);
}

static pid_t pid_of_file(const struct local *l, const char *name)
{
	_cleanup_(mo_freep) char *path = local_path(l, "pid/%s", name), *boot = mo_boot_id();
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t pid = 0, start = 0;
	if (mo_read_file(path, 256, &b) < 0 || !b.data)
		return 0;
	char *rest = b.data, *word = strsep(&rest, " \n"), *start_word = strsep(&rest, " \n"),
	     *boot_word = strsep(&rest, " \n");
	if (mo_parse_i64(word, 1, INT32_MAX, &pid) < 0 || !start_word ||
	    mo_parse_i64(start_word, 0, INT64_MAX, &start) < 0 || !mo_streq(boot_word, boot))
		return 0;
	return alive((pid_t)pid, start) ? (pid_t)pid : 0;
}

static bool has_open(pid_t pid, const struct stat *file)
{
	_cleanup_(mo_freep) char *dir = mo_printf("/proc/%d/fd", (int)pid);
	DIR *d = opendir(dir);
	bool found = false;
	if (!d)
		return false;
	for (struct dirent *e; !found && (e = readdir(d));) {
		struct stat st;
		found = fstatat(dirfd(d), e->d_name, &st, 0) == 0 && st.st_ino == file->st_ino &&
			st.st_dev == file->st_dev;
	}
	closedir(d);
	return found;
}

/* Who holds the flock on this file: /proc/locks names candidates by inode, the open descriptor
 * proves it. 0 = nobody (or nobody we may see). */
static pid_t lock_holder(const char *path)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct stat st;
	if (stat(path, &st) < 0 || mo_read_file("/proc/locks", PROC_LOCKS_MAX, &b) < 0 || !b.data)
		return 0;
	_cleanup_(mo_freep) char *inode = mo_printf(":%llu ", (unsigned long long)st.st_ino);
	for (char *rest = b.data, *line; rest && (line = strsep(&rest, "\n"));) {
		int64_t pid = 0;
		if (!strstr(line, inode) || !strstr(line, "FLOCK"))
			continue;
		for (char *word; (word = strsep(&line, " "));)
			if (mo_parse_i64(word, 1, INT32_MAX, &pid) == 0)
				break;
		if (pid > 0 && has_open((pid_t)pid, &st))
			return (pid_t)pid;
	}
	return 0;
}

pid_t local_pid(const struct local *l, const char *name)
{
	pid_t pid = pid_of_file(l, name);
	_cleanup_(mo_freep) char *lock = !strcmp(name, "moed")
						 ? local_path(l, "moed/lock")
						 : local_path(l, "state/%s/lock", name);
	return pid ? pid : lock_holder(lock);
}

static int write_pid(const struct local *l, const char *name, pid_t pid)
{
	struct mo_proc p;
	_cleanup_(mo_freep) char *path = local_path(l, "pid/%s", name), *boot = mo_boot_id();
	if (mo_proc_read(pid, &p) < 0)
		return -ESRCH;
	_cleanup_(mo_freep) char *text =
		mo_printf("%d %lld %s\n", (int)pid, (long long)p.start_time, boot);
	return mo_write_file(path, text, strlen(text), 0600, false);
}

/* In the child: a session of its own, nothing of ours but the three descriptors, default
 * signals. Only async-signal-safe calls. */
static void detach_and_exec(int log, int null, const char *program, char *const *argv,
			    char *const *env)
{
	sigset_t none;
	sigemptyset(&none);
	setsid();
	for (int s = 1; s < NSIG; s++) {
		const struct sigaction dfl = { .sa_handler = SIG_DFL };
		sigaction(s, &dfl, NULL);
	}
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(127);
	syscall(SYS_close_range, 3u, ~0u, 0u);
	execve(program, argv, env);
	_exit(127);
}

int local_start(const struct local *l, const char *name, const char *program, const char *config,
		pid_t *ret, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_libexec(program),
				 *log_path = local_path(l, "log/%s.log", name),
				 *mark = mo_printf("MOE_LOCAL=%s", l->dir);
	_cleanup_(mo_freep) char **env = NULL;
	size_t n_env = 0;
	if (!path)
		return mo_error_set(err, -ENOENT,
				    "%s: the program is neither beside moectl nor installed; build "
				    "or install it",
				    program);
	_cleanup_(mo_closep) int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
					    0600),
				 null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (log < 0 || null < 0)
		return mo_error_set(err, -errno, "%s: %s", log_path, strerror(errno));
	for (char **e = environ; *e; e++)
		if (!mo_starts_with(*e, "MOE_LOCAL=") && !mo_starts_with(*e, "NOTIFY_SOCKET=") &&
		    !mo_starts_with(*e, "JOURNAL_STREAM="))
			*MO_GROW(env, n_env) = *e;
	*MO_GROW(env, n_env) = mark;
	*MO_GROW(env, n_env) = NULL;
	char *const argv[] = { path, (char *)"--config", (char *)config, NULL };
	pid_t pid = fork();
	if (pid < 0)
		return mo_error_set(err, -errno, "%s: fork: %s", program, strerror(errno));
	if (pid == 0)
		detach_and_exec(log, null, path, argv, env);
	int r = write_pid(l, name, pid);
	if (r < 0 && r != -ESRCH) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (r == -ENOSPC || r == -EDQUOT)
			return mo_error_set(err, r,
					    "%s/pid/%s: %s, so %s was not started; free space "
					    "there and run `moectl local up` again (daemons and "
					    "ranks that run are not touched)",
					    l->dir, name, strerror(-r), program);
		return mo_error_set(err, r,
				    "%s/pid/%s: %s, so %s was not started; correct that and run "
				    "`moectl local up` again",
				    l->dir, name, strerror(-r), program);
	}
	*ret = pid;
	return 0;
}

int local_init(const struct local *l, const char *config, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_libexec("moed"), *id = local_path(l, "moed/store.id"),
				 *cut = local_path(l, "moed/beginning"),
				 *log_path = local_path(l, "log/moed.log");
	_cleanup_(mo_closep) int log =
		open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	char *const argv[] = { path, (char *)"--config", (char *)config, (char *)"--init", NULL };
	int status = 0;
	/* an `up` before was interrupted behind this */
	if (access(id, F_OK) == 0 && access(cut, F_OK) < 0)
		return 0;
	if (!path)
		return mo_error_set(err, -ENOENT,
				    "moed: the program is neither beside moectl nor installed; "
				    "build or install it");
	pid_t pid = fork();
	if (pid == 0) {
		if (dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
			execv(path, argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return mo_error_set(err, -errno, "moed: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	_cleanup_(mo_freep) char *tail = local_log_tail(l, "moed");
	return mo_error_set(err, -EIO, "moed --init: %s (log: %s)", *tail ? tail : "it failed",
			    log_path);
}

/* Waits until the pidfd's process is gone. */
static bool gone_within(int pidfd, pid_t pid, int64_t ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	return poll(&p, 1, (int)ms) == 1 || local_ended(pid);
}

bool local_stop(const struct local *l, const char *name, int64_t wait_ms, int *ret_signal)
{
	pid_t pid = local_pid(l, name);
	int status = 0;
	if (!pid)
		return true;
	_cleanup_(mo_closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/* the descriptor is of the process we meant, or it is gone */
	if (fd < 0 || local_pid(l, name) != pid)
		return local_pid(l, name) == 0;
	syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0);
	if (gone_within(fd, pid, wait_ms)) {
		if (ret_signal && mo_proc_exit_status(fd, pid, &status) == 0 && WIFSIGNALED(status))
			*ret_signal = WTERMSIG(status);
		return true;
	}
	syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	return gone_within(fd, pid, 5000);
}

char *local_log_tail(const struct local *l, const char *name)
{
	_cleanup_(mo_freep) char *path = local_path(l, "log/%s.log", name);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *last = "";
	if (mo_read_file(path, 64u << 20, &b) < 0 || !b.data)
		return mo_strdup("");
	for (char *rest = b.data, *line; rest && (line = strsep(&rest, "\n"));)
		if (*line)
			/* "<3>text": the journal's level prefix */
			last = line[0] == '<' && line[1] && line[2] == '>' ? line + 3 : line;
	return mo_strdup(last);
}

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
	    alive(peer.pid, -1))
		return peer.pid;
	return lock_holder(lock);
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
		if (!s->pid || !alive(s->pid, s->pid_start))
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
