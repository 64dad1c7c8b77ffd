/* Runs one command beside the ranks, in a child of the supervisor that does nothing else: in the
 * ranks' control group and mount namespace, as their user, with the environment of the rank, bound
 * to nothing. Whatever the command starts stays below this process, and ends with the command, at
 * its deadline, or with the step. Nothing here is counted as a rank. */
#include "agent/stepd/exec_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "agent/core/stepd/exec_words.h"
#include "agent/stepd/child.h"
#include "agent/stepd/prepare.h"
#include "agent/stepd/process.h"
#include "agent/stepd/tree.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/proc.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define ENV_BYTES_MAX (8 * 1024 * 1024)
#define LOOK_MS 10 /* at its output: a pipe's worth each time */
#define KILL_PASSES 200

/* What the child has beside itself. The step's lock until the command is executed: whoever could
 * take it before would find no process of it yet, and say that the step is gone. */
struct run {
	const struct stepd *s;
	const struct exec_ask *ask;
	const char *result;
	int lock_fd, cgroup_fd, mnt_fd; /* the last two: -1 where the step has none */
	int user_fd;                    /* 0: none */
};
struct child {
	pid_t pid;
	int report, out, err; /* reading ends */
	struct exec_output output, errors;
	bool failed;
	struct child_failure failure;
};

static void leave(const char *path, const struct exec_result *result)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(&exec_result_desc, result, &b);
	/* what cannot be written is not there: the agent says so at the deadline */
	(void)mo_write_file(path, b.data, b.len, 0600, false);
}

void exec_leave_refusal(const char *result, const char *why)
{
	struct exec_result r;

	mo_desc_init(&exec_result_desc, &r);
	r.error = mo_strdup(why);
	leave(result, &r);
	exec_result_done(&r);
}

static char **environment(const struct run *x)
{
	_cleanup_(mo_freep) char *path = mo_path(x->s->dir, "env.json");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct env_record record;
	char **env = NULL;

	mo_desc_init(&env_record_desc, &record);
	if (mo_read_file(path, ENV_BYTES_MAX, &b) == 0 && b.data &&
	    wire_decode(&env_record_desc, b.data, b.len, false, &record, NULL) >= 0)
		env = exec_environment(&record, x->ask->rank);
	mo_desc_done(&env_record_desc, &record);
	return env;
}

/* Forks the command: from there on as a rank (child.c), but for what a rank is bound to. */
static int start(const struct run *x, char **env, struct child *c)
{
	static struct prepared memory; /* as long as this process */
	const struct launch *l = &x->s->spool.launch;
	char **argv = mo_alloc_array(x->ask->n_argv + 1, sizeof(*argv));
	int report = -1, out = -1, err = -1, r = process_pipe(0, &c->report, &report);

	memcpy(argv, x->ask->argv, x->ask->n_argv * sizeof(*argv));
	if (r == 0)
		r = process_pipe(0, &c->out, &out);
	if (r == 0)
		r = process_pipe(0, &c->err, &err);
	struct child_plan plan = {
		.argv = argv,
		.envp = env,
		.candidates = prepared_candidates(&memory, argv[0], env),
		.workdir = l->workdir ? l->workdir : x->s->who.home,
		.is_home = !l->workdir,
		.in_fd = mo_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0),
		.out_fd = out,
		.err_fd = err,
		.report_fd = report,
		.cgroup_fd = x->cgroup_fd,
		.mnt_fd = x->mnt_fd,
		.in_image = x->s->spool.launch.container != NULL,
		.user_fd = x->user_fd,
		.parent = mo_proc_self(),
		.who = &x->s->who,
		.mem_policy = -1,
	};
	if (r == 0)
		r = plan.in_fd < 0 ? plan.in_fd : process_exec(&plan);
	mo_close(plan.in_fd);
	mo_close(report);
	mo_close(out);
	mo_close(err);
	free(argv);
	c->pid = r > 0 ? r : 0;
	return MO_MIN(r, 0);
}

static void read_stream(int *fd, struct exec_output *o)
{
	char chunk[65536];

	for (int i = 0; *fd >= 0 && i < 16; i++) { /* one that never stops does not keep us */
		ssize_t n = mo_read(*fd, chunk, sizeof(chunk));

		if (n > 0)
			exec_output_add(o, chunk, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			*fd = mo_close(*fd);
		if (n <= 0)
			return;
	}
}

/* Whether it has ended, and how. */
static bool ended(const struct child *c, siginfo_t *ret)
{
	*ret = (siginfo_t){ 0 };
	return mo_proc_wait(P_PID, c->pid, ret, WEXITED | WNOHANG) < 0 || ret->si_pid == c->pid;
}

/* What it has left runs below us, as this process adopts orphans. */
static void end_all(void)
{
	siginfo_t si;

	for (int i = 0; i < KILL_PASSES; i++) {
		tree_kill_descendants();
		do
			si = (siginfo_t){ 0 };
		while (mo_proc_wait(P_ALL, 0, &si, WEXITED | WNOHANG) == 0 && si.si_pid);
		if (errno == ECHILD)
			return;
		mo_clock_rest_ms(LOOK_MS);
	}
}

/* Closed by the exec, or what it could not do before that: from then on the nets of the step find
 * it. */
static void read_report(struct run *x, struct child *c)
{
	ssize_t n = c->report < 0 ? 0 : mo_read(c->report, &c->failure, sizeof(c->failure));

	if (c->report < 0 || (n < 0 && errno == EAGAIN))
		return;
	c->failed = n == sizeof(c->failure);
	c->report = mo_close(c->report);
	x->lock_fd = mo_close(x->lock_fd);
}

/* Whether it has ended; else the deadline has come. */
static bool await(struct run *x, struct child *c, int64_t end_us, siginfo_t *ret)
{
	_cleanup_(mo_closep) int pidfd = mo_proc_open(c->pid);
	bool over;

	do {
		if (pidfd >= 0)
			mo_clock_rest_unless(pidfd, LOOK_MS);
		else
			mo_clock_rest_ms(LOOK_MS);
		over = ended(c, ret);
		read_report(x, c);
		read_stream(&c->out, &c->output);
		read_stream(&c->err, &c->errors);
	} while (!over && mo_clock_boot_us() < end_us);
	return over;
}

static char *failure_words(const struct run *x, const struct child_failure *f)
{
	int step = f->step > CHILD_NONE && f->step < _CHILD_STEP_N ? f->step : CHILD_NONE;
	const char *object = step == CHILD_EXEC ? x->ask->argv[0] : "";

	_cleanup_(mo_freep) char *why = child_problem(f, object);

	return mo_printf("the command on %s %s", x->s->spool.node, why);
}

static void fill(const struct run *x, struct child *c, bool over, const siginfo_t *si,
		 struct exec_result *r)
{
	if (c->failed) {
		r->error = failure_words(x, &c->failure);
		return;
	}
	r->late = !over;
	if (over && si->si_code == CLD_EXITED)
		r->code = si->si_status;
	else
		r->signal = over ? si->si_status : SIGKILL;
	r->out = exec_output_text(&c->output);
	r->err = exec_output_text(&c->errors);
	r->out_cut = c->output.cut;
	r->err_cut = c->errors.cut;
}

static void run(void *arg)
{
	struct run x = *(const struct run *)arg;
	struct child c = { .report = -1, .out = -1, .err = -1 };
	int64_t end_us = mo_clock_boot_us() + x.ask->deadline_ms * 1000;
	struct exec_result result;
	char **env = environment(&x);
	siginfo_t si = { 0 };
	/* without it what the command leaves would become the supervisor's */
	int r = env ? process_adopts_orphans() : -ENODATA;

	mo_desc_init(&exec_result_desc, &result);
	if (r == 0)
		r = start(&x, env, &c);
	if (r < 0)
		result.error = mo_printf("the command could not be started on %s: %s",
					 x.s->spool.node, strerror(-r));
	else {
		bool over = await(&x, &c, end_us, &si);

		end_all();
		fill(&x, &c, over, &si, &result);
	}
	leave(x.result, &result);
}

pid_t exec_run(const struct stepd *s, const struct exec_ask *ask, const char *result)
{
	static const struct mo_identity as_this = { 0 };
	struct run x = { .s = s, .ask = ask, .result = result, .cgroup_fd = -1, .mnt_fd = -1 };
	int fds[4] = { s->lock_fd }, n = 1;

	x.lock_fd = PROCESS_FIRST_FD;
	if (s->cgroup_procs_fd >= 0) {
		x.cgroup_fd = PROCESS_FIRST_FD + n;
		fds[n++] = s->cgroup_procs_fd;
	}
	if (s->mnt_fd >= 0) {
		x.mnt_fd = PROCESS_FIRST_FD + n;
		fds[n++] = s->mnt_fd;
	}
	if (s->user_fd > 0) {
		x.user_fd = PROCESS_FIRST_FD + n;
		fds[n++] = s->user_fd;
	}
	return process_as(&(struct process_work){ .who = &as_this,
						  .fds = fds,
						  .n_fds = (size_t)n,
						  .apart = true,
						  .run = run,
						  .arg = &x });
}
