/* The engine's own configuration, read where the ranks will run (launch.config): only here are
 * the files, and the variables that engine.prepare mapped. moe-config does it as the job's user,
 * with the environment and in the directory of the node's first rank, because file systems hang
 * and files are hostile. What the engine could not load ends the launch here, with the reason,
 * and not in hundreds of ranks; what was not output in time does not: the record then has
 * none. The supervisor waits for its words and its end as for a rank's, so that an order that
 * comes meanwhile is obeyed. */
#include "agent/stepd/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "agent/core/stepd/config_words.h"
#include "agent/stepd/child.h"
#include "agent/stepd/files.h"
#include "agent/stepd/helper.h"
#include "agent/stepd/prepare.h"
#include "agent/stepd/process.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"
#include "lib/wire/encode.h"

#define DEADLINE_US 10000000
#define READ_BYTES 16384
#define OUTPUT_MAX 2048

/* moe-config, asked once. It has answered when both its ends are closed and its status was
 * taken. */
struct asked {
	pid_t pid;
	int64_t end_us;
	/* answered, or given up; the memory stays: events of its sources may be on their way */
	bool over;
	bool ended;
	int code; /* once it has ended: of its exit, -1: it was killed */
	struct output {
		struct source source;
		struct mo_buf text;
		size_t most;
	} out, err;
};

static void asked_close(struct stepd *s, struct asked *a)
{
	struct output *each[] = { &a->out, &a->err };

	a->over = true;
	for (size_t i = 0; i < ELEMENTSOF(each); i++) {
		wake_unwatch(s, &each[i]->source);
		mo_buf_done(&each[i]->text);
	}
}

static void texts_free(char ***env)
{
	for (size_t i = 0; *env && (*env)[i]; i++)
		free((*env)[i]);
	free(*env);
}

static void on_output(struct stepd *s, struct source *source, uint32_t events);

/* One of its outputs: our end into t, its end returned; a negative errno. */
static int open_output(struct stepd *s, struct output *t, size_t most)
{
	_cleanup_(mo_closep) int theirs = -1;
	int ours, r = process_pipe(0, &ours, &theirs);

	if (r < 0)
		return r;
	t->most = most;
	t->source = (struct source){ .fd = ours, .fn = on_output, .owner = t };
	r = wake_watch(s, &t->source, EPOLLIN);
	return r < 0 ? r : TAKE_FD(theirs);
}

static int ask(struct stepd *s, const struct prepared *p, const char *path, struct asked *a)
{
	const struct launch *l = &s->spool.launch;
	_cleanup_(texts_free) char **env =
		config_environment(p->given[0].items, p->given[0].n, l->user,
				   getenv("LD_LIBRARY_PATH"), getenv("MOE_DATA_DIR"));
	_cleanup_(texts_free) char **argv =
		config_question(l, s->root_fd >= 0 ? p->plans[0].workdir : NULL);
	/* where it cannot be given, the recipe is judged by the controller alone */
	_cleanup_(mo_closep) int recipe = l->recipe ? process_input(l->recipe) : -1;
	_cleanup_(mo_closep) int out = open_output(s, &a->out, MO_CONFIG_BYTES_MAX);
	_cleanup_(mo_closep) int err = out < 0 ? out : open_output(s, &a->err, OUTPUT_MAX);
	char *candidates[] = { (char *)path, NULL };
	struct child_plan plan = p->plans[0];

	if (err < 0)
		return err;
	plan.argv = argv;
	plan.envp = env;
	plan.candidates = candidates;
	plan.cpus = NULL;
	plan.mem_policy = -1;
	plan.in_fd = recipe >= 0 ? recipe : plan.in_fd;
	plan.out_fd = out;
	plan.err_fd = err;
	plan.report_fd = err; /* what it could not do before the program is seen by its status */
	plan.parent = mo_proc_self();
	if (s->root_fd >= 0) { /* it is no program of the image, and has our own data files */
		plan.mnt_fd = -1;
		plan.in_image = false;
		plan.user_fd = 0;
		plan.root_fd = s->root_fd;
		plan.workdir = "/";
	}
	a->end_us = mo_clock_boot_us() + DEADLINE_US;
	a->pid = process_exec(&plan);
	return a->pid < 0 ? a->pid : 0;
}

/* The controller must be able to read it: moe-config writes JSON, but what answered need not be
 * it. */
static const char *unstored(const struct asked *a)
{
	_cleanup_(mo_buf_done) struct mo_buf written = { 0 };
	const struct mo_buf *text = &a->out.text;
	bool is_text = text->len && !memchr(text->data, 0, text->len) &&
		       mo_utf8_valid(text->data, text->len);

	if (is_text)
		wire_string(text->data, &written);
	return config_unstored(a->code, text, is_text, written.len,
			       a->err.text.len ? a->err.text.data : NULL);
}

static void not_stored(const struct stepd *s, const char *why)
{
	mo_log(MO_WARNING, NULL,
	       &(struct mo_log_where){
		       .job = s->spool.launch.job, .attempt = s->spool.launch.attempt, .rank = -1 },
	       "the engine's configuration is not kept with the job: %s; the ranks start without",
	       why);
}

static void strip(struct mo_buf *b)
{
	if (b->data)
		b->data[b->len] = 0;
	while (b->len && b->data[b->len - 1] == '\n')
		b->data[--b->len] = 0;
}

static void keep(struct stepd *s, struct asked *a)
{
	if (!s->spool.launch.config)
		return;
	strip(&a->out.text);
	const char *why = unstored(a);
	if (why)
		not_stored(s, why);
	else if (s->ranks[0].rank == 0) /* one of all nodes is kept with the job */
		s->config = mo_buf_take(&a->out.text);
}

/* error NULL: the ranks can start. */
static void answer(struct stepd *s, const char *cause, int code, const char *error)
{
	struct note n;

	mo_desc_init(&note_desc, &n);
	if (error) {
		n.rank = s->ranks[0].rank;
		n.cause = mo_strdup(cause);
		n.code = code;
		n.text = mo_strdup(error);
	}
	stepd_queue(s, SE_CONFIG_READ, &n)->ok = !error;
}

static void judge(struct stepd *s, struct asked *a)
{
	if (a->err.text.len == OUTPUT_MAX)
		a->err.text.len = mo_utf8_cut(a->err.text.data, OUTPUT_MAX - 1);
	strip(&a->err.text);
	_cleanup_(mo_freep) char *why = config_refusal(&s->spool.launch, s->spool.node, a->code,
						       a->err.text.len ? a->err.text.data : NULL);

	if (!why)
		keep(s, a);
	answer(s, "config", EINVAL, why);
}

/* r: -ETIMEDOUT, -EFBIG, or why it could not be asked: it is killed, and the subreaper takes it.
 * The ranks start without. */
static void give_up(struct stepd *s, struct asked *a, int r)
{
	if (a->pid > 0 && !a->ended)
		process_kill(a->pid);
	not_stored(s, config_unread(r));
	answer(s, NULL, 0, NULL);
}

static void finish(struct stepd *s, int r)
{
	struct asked *a = s->asked;

	bool wanted = !s->killing; /* else it was killed with the step */

	if (wanted && r < 0)
		give_up(s, a, r);
	else if (wanted)
		judge(s, a);
	asked_close(s, a);
}

static void finish_if_over(struct stepd *s)
{
	const struct asked *a = s->asked;

	if (a->ended && a->out.source.fd < 0 && a->err.source.fd < 0)
		finish(s, 0);
}

/* What it says is heard to its end and kept as far as it fits: a refusal is none the less one
 * for being long. */
static void on_output(struct stepd *s, struct source *source, uint32_t events)
{
	struct output *t = source->owner;
	char chunk[READ_BYTES];
	ssize_t n = mo_read(source->fd, chunk, sizeof(chunk));
	size_t room = t->most - t->text.len;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (size_t)n > room && t == &s->asked->out) {
		finish(s, -EFBIG);
		return;
	}
	if (n > 0) {
		mo_buf_add(&t->text, chunk, MO_MIN((size_t)n, room));
		return;
	}
	wake_unwatch(s, source);
	finish_if_over(s);
}

bool config_reaped(struct stepd *s, const siginfo_t *si)
{
	struct asked *a = s->asked;

	if (!a || a->ended || a->pid != si->si_pid)
		return false;
	a->ended = true;
	a->code = si->si_code == CLD_EXITED ? si->si_status : -1;
	if (!a->over)
		finish_if_over(s);
	return true;
}

void config_tick(struct stepd *s)
{
	int64_t now = mo_clock_boot_us();

	if (!s->asked || s->asked->over)
		return;
	if (now >= s->asked->end_us)
		finish(s, -ETIMEDOUT);
	else
		stepd_tick_in(s, s->asked->end_us - now);
}

/* What the ranks are given is whole; moe-config is given the same. */
static void config_go_on(struct stepd *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct launch *l = &s->spool.launch;
	const char *cause = "exec";
	int r = prepare_end(s, s->prepared_ahead, &cause, &err);

	if (r < 0 || (!l->config && !l->n_inputs)) {
		answer(s, cause, -r, r < 0 ? mo_error_text(&err, r) : NULL);
		return;
	}
	_cleanup_(mo_freep) char *path = stepd_helper("moe-config");
	struct asked *a = s->asked = mo_alloc(sizeof(*a));

	a->out.source.fd = a->err.source.fd = -1;
	r = path ? ask(s, s->prepared_ahead, path, a) : -ENOENT;
	if (r < 0)
		finish(s, r);
	else
		config_tick(s);
}

/* It is made before, and kept for the ranks' start. */
void config_start(struct stepd *s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *cause = "exec";
	int r = prepare_begin(s, &s->prepared_ahead, &cause, &err);

	if (r < 0)
		answer(s, cause, -r, mo_error_text(&err, r));
	else
		files_read(s, s->prepared_ahead, config_go_on);
}
