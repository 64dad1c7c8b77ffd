/* Ranks: prepared, forked all together, each proved by its CLOEXEC pipe and read back from the
 * kernel, watched by pidfd, reaped with their last lines. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/stepd/ranks.h"
#include "agent/stepd/child.h"
#include "agent/stepd/error_file.h"
#include "agent/stepd/heartbeat.h"
#include "agent/stepd/keeper.h"
#include "agent/stepd/output.h"
#include "agent/stepd/prepare.h"
#include "agent/stepd/process.h"
#include "agent/stepd/rank_log.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/threads.h"
#include "agent/stepd/tree.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"

#define NUMA_MAPS_BYTES 4096
/* a rank's exec may hang in a dead file system for as long as it likes */
#define SETTLE_US 1000000

static void start_failed(struct stepd *s, struct rank *r, const char *cause, int error,
			 const char *text)
{
	struct note n;
	mo_desc_init(&note_desc, &n);
	n.rank = r->rank;
	n.cause = mo_strdup(cause);
	n.code = error < 0 ? -error : error;
	n.text = mo_strdup(text);
	stepd_queue(s, SE_START_FAILED, &n);
}

static void on_child_failure(struct stepd *s, struct rank *r, const struct child_failure *f)
{
	static const char *const causes[_CHILD_STEP_N] = {
		[CHILD_USER] = "user",   [CHILD_WORKDIR] = "workdir", [CHILD_AFFINITY] = "bind",
		[CHILD_MEMORY] = "bind", [CHILD_EXEC] = "exec",
	};
	int step = f->step > CHILD_NONE && f->step < _CHILD_STEP_N ? f->step : CHILD_NONE;
	const struct launch *l = &s->spool.launch;
	const char *object = step == CHILD_EXEC       ? l->argv[0]
			     : step == CHILD_WORKDIR  ? l->workdir ? l->workdir : s->who.home
			     : step == CHILD_AFFINITY ? s->spool.binds[r->local].cpus
						      : "";
	_cleanup_(mo_freep) char *why = child_problem(f, object);
	_cleanup_(mo_freep) char *text =
		mo_printf("rank %lld on %s %s", (long long)r->rank, s->spool.node, why);
	r->failed = true;
	start_failed(s, r, causes[step] ? causes[step] : "exec", f->error, text);
}

/* "prefer:0" of "7f2c3a000000 prefer:0 file=...": the first mapping follows the process' policy.
 * Caller frees; NULL when it cannot be read, for the reason in ret_error. */
static char *numa_policy(pid_t pid, int *ret_error)
{
	char path[48], text[NUMA_MAPS_BYTES];
	snprintf(path, sizeof(path), "/proc/%d/numa_maps", (int)pid);
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? -1 : mo_read(fd, text, sizeof(text) - 1);
	*ret_error = n < 0 ? errno : ENODATA;
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	const char *space = strchr(text, ' ');
	return space ? mo_strndup(space + 1, strcspn(space + 1, " \n")) : NULL;
}

/* A rank killed between fork and exec closes its report just as exec does, and what the kernel
 * then says of it is from before it was bound: no verdict. */
static bool died_unread(const struct rank *r)
{
	siginfo_t si = { 0 };
	return mo_proc_wait(P_PID, r->pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	       si.si_pid == r->pid;
}

/* What the kernel says of the rank after exec. Returns false when strict verification fails. */
static bool read_back(struct stepd *s, struct rank *r, struct note *n)
{
	const struct rank_bind *want = &s->spool.binds[r->local];
	const char *verify = s->spool.launch.bind.verify;
	struct mo_proc p;
	if (mo_proc_read(r->pid, &p) == 0)
		n->start_time = r->start_time = p.start_time;
	n->numa_node = want->numa_node;
	n->cpus = mo_proc_status(r->pid, "Cpus_allowed_list");
	if (mo_streq(verify, "off")) {
		n->bind_note = mo_strdup("verification is off");
		return true;
	}
	int error = 0;
	_cleanup_(mo_freep) char *policy = want->mem_policy == MEM_NONE || want->simulated
						   ? NULL
						   : numa_policy(r->pid, &error);
	bool unread = bind_unread(want, n->cpus, policy);
	bind_judge(want, n->cpus, policy, &n->bind_verified, &n->bind_note);
	if ((n->bind_verified == 0 || unread) && died_unread(r)) {
		n->bind_verified = -1;
		unread = false;
		mo_str_set(&n->bind_note, "it ended before its binding could be read back");
	}
	if (unread && n->cpus && error) {
		_cleanup_(mo_freep) char *note = TAKE_PTR(n->bind_note);
		n->bind_note =
			mo_printf("%s: /proc/%d/numa_maps: %s", note, (int)r->pid, strerror(error));
	}
	if (want->simulated)
		mo_str_set(&n->cpus, want->cpus);
	return bind_passes(verify, n->bind_verified, unread);
}

static void on_report(struct stepd *s, struct source *source, uint32_t events)
{
	struct rank *r = source->owner;
	struct child_failure f;
	ssize_t got = mo_read(source->fd, &f, sizeof(f));
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	wake_unwatch(s, source);
	if (got == sizeof(f)) {
		on_child_failure(s, r, &f);
		return;
	}
	struct note n;
	mo_desc_init(&note_desc, &n);
	n.rank = r->rank;
	n.pid = r->pid;
	if (r == &s->ranks[0])
		n.config = TAKE_PTR(s->config);
	bool good = read_back(s, r, &n);
	r->started = true;
	r->bind_verified = n.bind_verified;
	mo_str_set(&r->bind_note, n.bind_note);
	threads_begin(s, r);
	_cleanup_(mo_freep) char *why =
		good ? NULL
		     : mo_strdup(n.bind_note
					 ? n.bind_note
					 : "the kernel shows another binding than was asked for");
	stepd_queue(s, SE_STARTED, &n);
	if (good)
		return;
	n.rank = r->rank;
	n.text = mo_printf("rank %lld on %s: %s (bind.verify: strict)", (long long)r->rank,
			   s->spool.node, why);
	stepd_queue(s, SE_BIND_FAILED, &n);
}

static const char *death_cause(struct stepd *s, const siginfo_t *si)
{
	int64_t kills = tree_oom_kills(s);
	bool oom = si->si_code != CLD_EXITED && si->si_status == SIGKILL && kills > s->oom_kills;
	s->oom_kills = kills;
	return oom ? "oom" : NULL;
}

static void rank_died(struct stepd *s, struct rank *r, const siginfo_t *si)
{
	if (r->report.fd >= 0)
		on_report(s, &r->report, EPOLLIN); /* whether it ever started is reported first */
	r->exited = true;
	r->pid = 0;
	wake_unwatch(s, &r->pidfd);
	if (r->failed)
		return;
	output_drain(s, r);
	struct note n;
	mo_desc_init(&note_desc, &n);
	n.rank = r->rank;
	n.pid = si->si_pid;
	n.start_time = r->start_time;
	n.mono_ns = mo_clock_mono_ns();
	if (si->si_code == CLD_EXITED)
		n.code = si->si_status;
	else
		n.signal = si->si_status;
	const char *cause = death_cause(s, si);
	n.cause = cause ? mo_strdup(cause) : NULL;
	error_file_read(s, r);
	output_tail(r, &n);
	stepd_queue(s, SE_EXIT, &n);
}

static void on_pidfd(struct stepd *s, struct source *source, uint32_t events)
{
	struct rank *r = source->owner;
	siginfo_t si = { 0 };
	if (mo_proc_wait(WAIT_PIDFD, source->fd, &si, WEXITED | WNOHANG) == 0 &&
	    si.si_pid == r->pid)
		rank_died(s, r, &si);
}

static struct rank *rank_of_pid(struct stepd *s, pid_t pid)
{
	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].pid == pid)
			return &s->ranks[i];
	return NULL;
}

void ranks_reaped(struct stepd *s, const siginfo_t *si)
{
	struct rank *r = rank_of_pid(s, si->si_pid);
	if (r)
		rank_died(s, r, si);
}

/* False: said. */
static bool fork_all(struct stepd *s, struct prepared *p)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		int r = prepare_files(s, p, i, &err);
		if (r == 0 &&
		    (r = process_fork(s, &s->ranks[i], &p->plans[i], on_report, on_pidfd)) < 0)
			mo_error_set(&err, r, "rank %lld on %s could not be forked: %s",
				     (long long)s->ranks[i].rank, s->spool.node, strerror(-r));
		prepared_close_ends(p);
		if (r < 0) {
			start_failed(s, &s->ranks[i], "exec", r, mo_error_text(&err, r));
			return false;
		}
	}
	return true;
}

/* Where a log cannot be made nothing is begun. They are not held open, as each fork would copy and
 * close them. False: said. */
static bool logs_can_be_made(struct stepd *s)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		int r = output_open_log(s, &s->ranks[i], &err);

		if (r < 0) {
			start_failed(s, &s->ranks[i], "exec", r, mo_error_text(&err, r));
			return false;
		}
		s->ranks[i].log_fd = mo_close(s->ranks[i].log_fd);
	}
	return true;
}

/* Behind all forks. Those ranks run: a log that fails now is opened with their first word, as on a
 * disk that is full for a while. */
static void open_logs(struct stepd *s)
{
	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].pid > 0)
			(void)rank_log_open(s, &s->ranks[i]);
}

void ranks_start(struct stepd *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(prepared_freep) struct prepared *p = TAKE_PTR(s->prepared_ahead);
	const char *cause = "exec";
	bool ahead = p != NULL;
	/* no variable is read from a file, else it was prepared ahead (config.c) */
	int r = p ? 0 : prepare_begin(s, &p, &cause, &err);
	if (r == 0 && !ahead)
		r = prepare_end(s, p, &cause, &err);
	if (r < 0) {
		start_failed(s, &s->ranks[0], cause, r, mo_error_text(&err, r));
		return;
	}
	process_raise_limits(s);
	if (!logs_can_be_made(s))
		return;
	bool forked = fork_all(s, p);
	open_logs(s);
	if (!forked)
		return;
	s->prepared = TAKE_PTR(p);
	stepd_tick_in(s, SETTLE_US);
	heartbeat_start(s);
	keeper_start(s);
}

void ranks_settle(struct stepd *s, bool now)
{
	for (size_t i = 0; s->prepared && !now && i < s->n_ranks; i++)
		if (s->ranks[i].report.fd >= 0)
			return;
	if (!s->prepared)
		return;
	prepare_leave_record(s, s->prepared);
	s->prepared = prepared_free(s->prepared);
}
