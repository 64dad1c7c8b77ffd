/* engine.prepare: one program on this node before any rank, as the job's user, with the
 * environment of the node's first rank. It is part of the step: it dies with the supervisor, is
 * killed with the step, and whatever it leaves running is in the tree whose end is proved. Its
 * output stands at the head of the first rank's log; its last lines are the evidence when it
 * fails. The core decides what follows and when it takes too long. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/core/stepd/hook_words.h"
#include "agent/core/text/words.h"
#include "agent/stepd/hook.h"
#include "agent/stepd/child.h"
#include "agent/stepd/output.h"
#include "agent/stepd/files.h"
#include "agent/stepd/prepare.h"
#include "agent/stepd/process.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/proc.h"

static void answer(struct stepd *s, const char *cause, int code, char *text)
{
	struct note n;
	mo_desc_init(&note_desc, &n);
	n.cause = cause ? mo_strdup(cause) : NULL;
	n.code = code;
	n.text = text;
	stepd_queue(s, SE_PREPARED, &n)->ok = text == NULL;
}

void hook_note(struct stepd *s, struct note *n)
{
	struct rank *h = &s->hook;
	if (s->hook_ms != MO_NONE && s->spool.launch.times_prepare &&
	    (n->kind == NOTE_RUNNING || n->kind == NOTE_REFUSED))
		n->prepare_ms = s->hook_ms;
	if (n->kind != NOTE_REFUSED || !mo_streq(n->cause, "prepare"))
		return;
	output_tail(h, n);
	hook_says_last(n);
}

/* What it said of the ranks is theirs from now on, or no rank can start with it. */
static void take_hooks(struct stepd *s)
{
	if (s->hooks.refused > 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "%lld lines of engine.prepare look like env.NAME=VALUE or extra.key=value "
		       "and are not: left out",
		       (long long)s->hooks.refused);
	_cleanup_(mo_freep) char *refusal = hooks_refusal(&s->hooks, &s->spool.launch);
	if (!refusal)
		hooks_apply(&s->hooks, &s->spool.launch);
	s->ranks[0].log_base = s->hook.log_base;
	answer(s, NULL, 0,
	       refusal ? mo_printf("engine.prepare on %s %s", s->spool.node, refusal) : NULL);
}

/* Queues how it ended; ranks follow only after exit code 0. */
static void hook_died(struct stepd *s, const siginfo_t *si)
{
	struct rank *h = &s->hook;
	struct child_failure f = { 0 };
	bool unstarted = h->report.fd >= 0 && mo_read(h->report.fd, &f, sizeof(f)) == sizeof(f);
	s->hook_ms = MO_MAX(0, mo_clock_boot_us() - s->hook_began_us) / 1000;
	h->pid = 0;
	h->exited = true;
	wake_unwatch(s, &h->pidfd);
	wake_unwatch(s, &h->report);
	output_drain(s, h);
	output_close(s, h);
	bool exited = si->si_code == CLD_EXITED;
	int step = f.step > 0 && f.step < _CHILD_STEP_N ? f.step : 0;
	_cleanup_(mo_freep) char *found = child_found_problem(&f.found, s->spool.launch.prepare[0]);
	const struct hook_end end = { .node = s->spool.node,
				      .program = s->spool.launch.prepare[0],
				      .step = unstarted ? child_step_names[step] : NULL,
				      .found = found,
				      .error = f.error,
				      .code = exited ? si->si_status : 0,
				      .signal = exited ? 0 : si->si_status };
	char *problem = hook_problem(&end);
	if (problem)
		answer(s, NULL, hook_code(&end), problem);
	else
		take_hooks(s);
	hooks_done(&s->hooks);
}

static void on_hook_pidfd(struct stepd *s, struct source *source, uint32_t events)
{
	siginfo_t si = { 0 };
	if (mo_proc_wait(WAIT_PIDFD, source->fd, &si, WEXITED | WNOHANG) == 0 &&
	    si.si_pid == s->hook.pid)
		hook_died(s, &si);
}

bool hook_reaped(struct stepd *s, const siginfo_t *si)
{
	if (s->hook.pid == 0 || si->si_pid != s->hook.pid)
		return false;
	hook_died(s, si);
	return true;
}

/* Nothing to do before its end: what it says is read then. */
static void on_hook_report(struct stepd *s, struct source *source, uint32_t events)
{
	wake_watch(s, source, 0);
}

static int hook_fork(struct stepd *s, struct prepared *p, struct mo_error *err)
{
	const struct launch *l = &s->spool.launch;
	struct rank *h = &s->hook;
	struct child_plan plan = p->plans[0];
	_cleanup_(mo_freep) char **argv = mo_alloc_array(l->n_prepare + 1, sizeof(char *));
	for (size_t i = 0; i < l->n_prepare; i++)
		argv[i] = prepared_keep(p, words_expand(l, 0, s->who.home, l->prepare[i]));
	plan.argv = argv;
	plan.candidates = prepared_candidates(p, argv[0], plan.envp);
	plan.cpus = NULL;
	plan.mem_policy = -1;
	int e = output_open_log(s, h, err);
	if (e == 0)
		e = output_open_pipes(s, h, &p->out_fd, &p->err_fd, err);
	plan.out_fd = p->out_fd;
	plan.err_fd = p->err_fd;
	if (e == 0 && (e = process_fork(s, h, &plan, on_hook_report, on_hook_pidfd)) < 0)
		mo_error_set(err, e, "engine.prepare on %s could not be forked: %s", s->spool.node,
			     strerror(-e));
	return e;
}

static void refuse(struct stepd *s, const char *cause, int r, const struct mo_error *err)
{
	answer(s, cause, -r, mo_strdup(mo_error_text(err, r)));
}

/* The files of its variables were read. */
static void hook_go_on(struct stepd *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(prepared_freep) struct prepared *p = TAKE_PTR(s->prepared_ahead);
	const char *cause = "exec";
	int r = prepare_end(s, p, &cause, &err);
	if (r == 0) {
		cause = "prepare";
		process_raise_limits(s);
		r = hook_fork(s, p, &err);
	}
	if (r < 0)
		refuse(s, cause, r, &err);
}

void hook_start(struct stepd *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *cause = "exec";
	s->hook_began_us = mo_clock_boot_us();
	int r = prepare_begin(s, &s->prepared_ahead, &cause, &err);
	if (r < 0)
		refuse(s, cause, r, &err);
	else
		files_read(s, s->prepared_ahead, hook_go_on);
}
