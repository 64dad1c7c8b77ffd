/* See proc.h. */
#include "lib/base/proc.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/rooted.h"

/* PIDFD_GET_INFO of <linux/pidfd.h>, Linux 6.13; the exit code since 6.15. Older ones refuse the
 * call. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define PIDFD_GET_INFO _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT (1u << 3)
/* fields of /proc/PID/stat, counted from its state, the third */
#define STAT_FLAGS 6
#define STAT_UTIME 11
#define STAT_EXIT_CODE 49
#define FLAG_EXITING 0x4 /* PF_EXITING of <linux/sched.h> */

/* environments are at most a quarter of the stack limit; a larger one is not ours */
#define PROC_FILE_MAX (8 * 1024 * 1024)
#define MARKER_MAX 4096

static int read_proc(pid_t pid, const char *file, struct mo_buf *b)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return mo_read_file(path, PROC_FILE_MAX, b);
}

/* The n-th space separated field of s (0-based), as a number. */
static int64_t field(const char *s, int n)
{
	for (; n > 0 && s; n--) {
		s = strchr(s, ' ');
		s = s ? s + 1 : NULL;
	}
	int64_t v = -1;
	_cleanup_(mo_freep) char *word = s ? mo_strndup(s, strcspn(s, " \n")) : NULL;
	return word && mo_parse_i64(word, INT64_MIN, INT64_MAX, &v) == 0 ? v : -1;
}

/* utime, stime, and the same of children that were waited for */
static int64_t cpu_us(const char *s)
{
	int64_t ticks = 0;

	for (int n = STAT_UTIME; n < STAT_UTIME + 4; n++)
		ticks += MO_MAX(field(s, n), 0);
	return ticks * (1000000 / MO_MAX(sysconf(_SC_CLK_TCK), 1));
}

int mo_proc_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

int mo_proc_wait(idtype_t type, int64_t id, siginfo_t *ret, int options)
{
	return waitid(type, (id_t)id, ret, options) < 0 ? -errno : 0;
}

void mo_proc_go_first(void)
{
	static const char most[] = "1000";
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0);

	if (fd >= 0)
		(void)mo_write_all(fd, most, strlen(most));
}

int mo_proc_raise_limit(int which, int64_t wanted, uint64_t *ret_now)
{
	rlim_t v = wanted < 0 ? RLIM_INFINITY : (rlim_t)wanted;
	struct rlimit now, want = { .rlim_cur = v, .rlim_max = v };

	if (getrlimit((__rlimit_resource_t)which, &now) < 0)
		return -errno;
	if (setrlimit((__rlimit_resource_t)which, &want) == 0)
		return 0;
	want = (struct rlimit){ .rlim_cur = MO_MIN(v, now.rlim_max), .rlim_max = now.rlim_max };
	setrlimit((__rlimit_resource_t)which, &want);
	/* read back: a limit that was silently not raised fails much later, in RDMA */
	if (getrlimit((__rlimit_resource_t)which, &now) < 0)
		return -errno;
	if (ret_now)
		*ret_now = now.rlim_cur;
	return now.rlim_cur < v;
}

int mo_proc_cpus(pid_t tid, cpu_set_t *ret, size_t size)
{
	return sched_getaffinity(tid, size, ret) < 0 ? -errno : 0;
}

pid_t mo_proc_self(void)
{
	return getpid();
}

int mo_proc_read(pid_t pid, struct mo_proc *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = read_proc(pid, "stat", &b);
	/* The command name may hold anything, also ")": fields begin after the last one. */
	const char *end = r < 0 || !b.data ? NULL : strrchr(b.data, ')');
	if (!end || end[1] != ' ')
		return -ESRCH;
	*ret = (struct mo_proc){ .pid = pid,
				 .state = end[2],
				 .ppid = (pid_t)field(end + 2, 1),
				 .ending = field(end + 2, STAT_FLAGS) & FLAG_EXITING,
				 .start_time = field(end + 2, 19),
				 .cpu_us = cpu_us(end + 2) };
	return 0;
}

int mo_proc_exit_status(int pidfd, pid_t pid, int *ret_status)
{
	struct pidfd_info info = { .mask = PIDFD_INFO_EXIT };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const char *end = NULL;
	if (ioctl(pidfd, PIDFD_GET_INFO, &info) == 0 && info.mask & PIDFD_INFO_EXIT) {
		*ret_status = info.exit_code;
		return 0;
	}
	/* Not reaped yet: the zombie shows it to its own user. */
	if (read_proc(pid, "stat", &b) >= 0 && b.data)
		end = strrchr(b.data, ')');
	if (!end || end[1] != ' ' || end[2] != 'Z')
		return -ENODATA;
	*ret_status = (int)field(end + 2, STAT_EXIT_CODE);
	return 0;
}

bool mo_proc_has_env(pid_t pid, const char *assignment)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (read_proc(pid, "environ", &b) < 0)
		return false;
	for (size_t at = 0; at < b.len; at += strlen(b.data + at) + 1)
		if (mo_streq(b.data + at, assignment))
			return true;
	return false;
}

char *mo_proc_status(pid_t pid, const char *key)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (read_proc(pid, "status", &b) < 0 || !b.data)
		return NULL;
	size_t n = strlen(key);
	for (const char *line = b.data; line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, key, n) == 0 && line[n] == ':') {
			const char *value = line + n + 1 + strspn(line + n + 1, " \t");
			return mo_strndup(value, strcspn(value, "\n"));
		}
	return NULL;
}

bool mo_proc_sigkill_pending(pid_t pid)
{
	const char *keys[] = { "SigPnd", "ShdPnd" };
	for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
		_cleanup_(mo_freep) char *mask = mo_proc_status(pid, keys[i]);
		size_t n = mask ? strlen(mask) : 0;
		/* hexadecimal; signal 9 is bit 8: the lowest bit of the third digit from the
		 * right */
		if (n >= 3 && strchr("13579bdf", mask[n - 3]))
			return true;
	}
	return false;
}

int mo_proc_each(int (*fn)(void *arg, pid_t pid), void *arg)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, "/proc", 0);
	if (!d)
		return -errno;
	int r = 0;
	for (const char *name; r == 0 && (name = mo_dir_next(d));) {
		int64_t pid;
		if (mo_parse_i64(name, 1, INT32_MAX, &pid) == 0)
			r = fn(arg, (pid_t)pid);
	}
	return r;
}

int mo_proc_kill(pid_t pid, int64_t start_time)
{
	_cleanup_(mo_closep) int fd = mo_proc_open(pid);
	struct mo_proc p;
	if (fd < 0 || mo_proc_read(pid, &p) < 0 || p.start_time != start_time)
		return 0;
	return syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
}

static bool is_dead(pid_t tid)
{
	struct mo_proc p;

	return mo_proc_read(tid, &p) < 0 || p.state == 'Z' || p.state == 'X';
}

/* One that lives of the process whose first thread has ended, which the kernel shows as a zombie
 * without environment and namespaces as long as others run; 0: none does. */
static pid_t living_thread(pid_t pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/task", (int)pid);
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, path, 0);

	for (const char *name; d && (name = mo_dir_next(d));) {
		int64_t tid;
		if (mo_parse_i64(name, 1, INT32_MAX, &tid) == 0 && !is_dead((pid_t)tid))
			return (pid_t)tid;
	}
	return 0;
}

int mo_proc_sched(pid_t pid, int64_t *ret_cpu_us, int64_t *ret_delay_us)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/task", (int)pid);
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, path, 0);
	int64_t cpu = 0, delay = 0;
	bool any = false;

	for (const char *name; d && (name = mo_dir_next(d));) {
		_cleanup_(mo_freep) char *file = mo_printf("%s/%s/schedstat", path, name);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		/* nanoseconds on a processor, nanoseconds in a queue for one, how often */
		if (mo_read_file(file, PROC_FILE_MAX, &b) < 0 || !b.data || field(b.data, 1) < 0)
			continue;
		cpu += MO_MAX(field(b.data, 0), 0);
		delay += field(b.data, 1);
		any = true;
	}
	if (!any)
		return -ESRCH;
	*ret_cpu_us = cpu / 1000;
	*ret_delay_us = delay / 1000;
	return 0;
}

/* A file of data below the root of the process, which it may have changed to a directory of its
 * own. */
static int read_below_root(pid_t pid, const char *path, struct mo_buf *ret)
{
	_cleanup_(mo_freep) char *top = mo_printf("/proc/%d/root", (int)pid);
	_cleanup_(mo_closep) int root = mo_open_at(AT_FDCWD, top, O_PATH | O_DIRECTORY, 0);

	return root < 0 ? root : mo_read_in(root, path, O_NOFOLLOW, MARKER_MAX, ret);
}

static bool is_inside(const struct mo_hunt *h, pid_t pid)
{
	_cleanup_(mo_freep) char *ns = mo_printf("/proc/%d/ns/mnt", (int)pid);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct stat st;

	return mo_stat(ns, &st) == 0 && (uint64_t)st.st_ino == h->mnt &&
	       read_below_root(pid, h->marker, &b) >= 0 && b.data && mo_streq(b.data, h->text);
}

/* In do_exit() of the kernel devices are closed by exit_task_work(), behind exit_mm(), exit_fs()
 * and exit_task_namespaces(): ENOENT then. Processes that the caller may not look into: EACCES. */
static bool may_be_ours(pid_t tid)
{
	_cleanup_(mo_freep) char *ns = mo_printf("/proc/%d/ns/mnt", (int)tid);
	struct mo_proc p;
	struct stat st;

	if (mo_proc_read(tid, &p) < 0 || !p.ending)
		return false;
	return mo_stat(ns, &st) == 0 || errno == ENOENT;
}

static bool same_process(const struct mo_proc *a, const struct mo_proc *b)
{
	return a->pid == b->pid && a->start_time == b->start_time;
}

static void see(struct mo_hunt *h, const struct mo_proc *p)
{
	for (size_t i = 0; i < h->n_seen; i++)
		if (same_process(&h->seen[i], p))
			return;
	*MO_GROW(h->seen, h->n_seen) = *p;
}

struct pass {
	struct mo_hunt *h;
	struct mo_proc *ending;
	size_t n_ending, found;
};

static int look_at(void *arg, pid_t pid)
{
	struct pass *pass = arg;
	struct mo_hunt *h = pass->h;
	struct mo_proc p;

	if (pid == mo_proc_self() || mo_proc_read(pid, &p) < 0 || p.state == 'X')
		return 0;
	pid_t tid = p.state == 'Z' ? living_thread(pid) : pid;

	if (!tid)
		return 0;
	/* Asked after the start time was read: a reused pid is noticed by mo_proc_kill. */
	if ((h->assignment && mo_proc_has_env(tid, h->assignment)) ||
	    (h->mnt && is_inside(h, tid))) {
		mo_proc_kill(pid, p.start_time);
		see(h, &p);
		pass->found++;
	} else if (may_be_ours(tid)) {
		*MO_GROW(pass->ending, pass->n_ending) = p;
	}
	return 0;
}

static bool lives(const struct mo_proc *was)
{
	struct mo_proc p;

	if (mo_proc_read(was->pid, &p) < 0 || !same_process(was, &p) || p.state == 'X')
		return false;
	return p.state != 'Z' || living_thread(p.pid);
}

size_t mo_hunt_pass(struct mo_hunt *h)
{
	struct pass pass = { .h = h };
	size_t n = 0;

	mo_proc_each(look_at, &pass);
	for (size_t i = 0; i < pass.n_ending && (!h->begun || pass.found > 0); i++)
		see(h, &pass.ending[i]);
	free(pass.ending);
	h->begun = true;
	for (size_t i = 0; i < h->n_seen; i++)
		if (lives(&h->seen[i]))
			h->seen[n++] = h->seen[i];
	h->n_seen = n;
	return n;
}

void mo_hunt_done(struct mo_hunt *h)
{
	free(h->seen);
	*h = (struct mo_hunt){ 0 };
}
