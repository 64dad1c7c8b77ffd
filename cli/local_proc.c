/* Processes of a local cluster: start detached, find again, stop, and prove that none is left
 * (local.c). */
#include "cli/local_proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"

#define PROC_LOCKS_MAX (16u << 20)

bool local_alive(pid_t pid, int64_t start_time)
{
	struct mo_proc p;
	return pid > 0 && mo_proc_read(pid, &p) == 0 && p.state != 'Z' && p.state != 'X' &&
	       (start_time < 0 || p.start_time == start_time);
}

bool local_ended(pid_t pid)
{
	int status;
	return waitpid(pid, &status, WNOHANG) == pid || !local_alive(pid, -1);
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
	return local_alive((pid_t)pid, start) ? (pid_t)pid : 0;
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

pid_t local_lock_holder(const char *path)
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
	return pid ? pid : local_lock_holder(lock);
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
