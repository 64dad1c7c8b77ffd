/* Who the ranks run as (child.h): the name comes from the authenticated submitter, ids and groups only from this node's NSS. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/stepd/child.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"

#define GROUPS_MAX 65536
#define PASSWD_BUFFER (64 * 1024)
#define READ_DEADLINE_MS 10000

void identity_done(struct identity *who) {
	free(who->groups);
	free(who->user);
	free(who->home);
	free(who->shell);
	*who = (struct identity){0};
}

static void take_entry(struct identity *who, const struct passwd *pw) {
	who->uid = pw->pw_uid;
	who->gid = pw->pw_gid;
	mo_str_set(&who->user, pw->pw_name);
	mo_str_set(&who->home, pw->pw_dir && pw->pw_dir[0] ? pw->pw_dir : "/");
	mo_str_set(&who->shell, pw->pw_shell && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh");
}

static void list_groups(struct identity *who) {
	who->n_groups = 64;
	who->groups = mo_alloc_array((size_t)who->n_groups, sizeof(gid_t));
	while (getgrouplist(who->user, who->gid, who->groups, &who->n_groups) < 0 && who->n_groups <= GROUPS_MAX)
		who->groups = mo_realloc_array(who->groups, (size_t)who->n_groups, sizeof(gid_t));
}

int identity_resolve(const char *user, bool allow_root, struct identity *ret, struct mo_error *err) {
	_cleanup_(identity_done) struct identity who = {0};
	_cleanup_(mo_freep) char *buffer = mo_alloc(PASSWD_BUFFER);
	struct passwd entry, *found = NULL;
	uid_t self = geteuid();
	int r = user ? getpwnam_r(user, &entry, buffer, PASSWD_BUFFER, &found) : getpwuid_r(self, &entry, buffer, PASSWD_BUFFER, &found);
	if (user && !found)
		return mo_error_set(err, -EPERM, "user '%s' does not exist on this node%s%s; create the account here or submit as another user", user, r ? ": " : "", r ? strerror(r) : "");
	if (found)
		take_entry(&who, found);
	else {
		struct passwd bare = {.pw_uid = self, .pw_gid = getegid(), .pw_name = (char *)"nobody"};
		take_entry(&who, &bare);
	}
	if (who.uid != self && self != 0)
		return mo_error_set(err, -EPERM, "this agent runs as uid %u and cannot start ranks of user '%s'; run the agent as root or submit as its own user", (unsigned)self, user);
	if (who.uid == 0 && !allow_root)
		return mo_error_set(err, -EPERM, "ranks would run as root; submit as an ordinary user, or set allow_root: true in agent.yaml");
	who.change = who.uid != self;
	if (who.change) {
		list_groups(&who);
		if (who.n_groups > GROUPS_MAX)
			return mo_error_set(err, -EPERM, "user '%s' is in more than %d groups", user, GROUPS_MAX);
	}
	*ret = who;
	who = (struct identity){0};
	return 0;
}

/* O_NONBLOCK: a FIFO in the file's place must not hang the step. */
static int read_plain(const char *path, size_t max, int out) {
	_cleanup_(mo_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	char chunk[4096];
	size_t total = 0;
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		total += (size_t)n;
		if (total > max)
			return -EFBIG;
		int r = mo_write_all(out, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
}

static _Noreturn void read_child(const struct identity *who, const char *path, size_t max, int out) {
	if (who->change && (setgroups((size_t)who->n_groups, who->groups) < 0 || setresgid(who->gid, who->gid, who->gid) < 0 || setresuid(who->uid, who->uid, who->uid) < 0))
		_exit(EPERM);
	_exit(-read_plain(path, max, out));
}

int identity_read_file(const struct identity *who, const char *path, size_t max, struct mo_buf *b) {
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		read_child(who, path, max, fds[1]);
	close(fds[1]);
	_cleanup_(mo_closep) int in = fds[0];
	if (pid < 0)
		return -errno;
	int64_t end_ms = mo_clock_boot_us() / 1000 + READ_DEADLINE_MS;
	int r = 0;
	for (;;) { /* a child process with a deadline: the file may lie on a dead network mount */
		struct pollfd p = {.fd = in, .events = POLLIN};
		int64_t left = end_ms - mo_clock_boot_us() / 1000;
		if (left <= 0 || poll(&p, 1, (int)left) == 0) {
			r = -ETIMEDOUT;
			break;
		}
		char chunk[4096];
		ssize_t n = read(in, chunk, sizeof(chunk));
		if (n == 0)
			break;
		if (n > 0)
			mo_buf_add(b, chunk, (size_t)n);
	}
	if (r < 0) {
		kill(pid, SIGKILL); /* it may be stuck in the kernel: the subreaper takes it when it ends */
		return r;
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
