/* A plan search may take seconds, so it runs as `moectl plan - --json` in a process of its own:
 * limits on CPU time, memory, answer size and time, killed when nobody wants the answer any
 * more. The recipe goes in by a pipe, what calibrates it by a memory file, never by a command
 * line. Who runs and who waits: daemon/core/rules/searches.c; who waited too long is answered
 * so. */
#include "daemon/helper.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/loop/loop.h"

#define HELPERS_MAX (SEARCHES_AT_ONCE + SEARCHES_WAITING)
#define WAIT_US (10 * 1000000LL)
#define TIME_US (60 * 1000000LL)
#define CPU_S 60
#define MEMORY_BYTES (4LL << 30)
#define OUTPUT_MAX (8u << 20)
#define ERRORS_MAX (16u << 10)
#define ARGS_MAX 24
#define ANCHORS_FD 3

/* in: the recipe still to be written; out, err: what came. fds are -1 when closed. */
struct channel {
	int fd;
	struct mo_buf data;
	size_t done, max;
	sd_event_source *source;
};
struct helper {
	struct helpers *owner;
	uint64_t id;
	helper_fn fn;
	void *arg;
	char *user, *anchors;
	enum search_kind kind;
	bool runs; /* or it waits until it may */
	char *argv[ARGS_MAX + 1];
	size_t n_argv;
	pid_t pid;
	sd_event_source *child;
	struct mo_timer *timer;
	struct channel in, out, err;
	bool exited, late, large;
	int status;
};
struct helpers {
	struct manager *manager;
	struct helper *all[HELPERS_MAX];
	uint64_t last_id;
	bool stopping;
};

void helpers_new(struct manager *m)
{
	m->helpers = mo_alloc(sizeof(*m->helpers));
	m->helpers->manager = m;
}

static void channel_close(struct channel *c)
{
	c->source = sd_event_source_disable_unref(c->source);
	c->fd = mo_close(c->fd);
}

static void helper_free(struct helper *h)
{
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (h->owner->all[i] == h)
			h->owner->all[i] = NULL;
	channel_close(&h->in);
	channel_close(&h->out);
	channel_close(&h->err);
	mo_buf_done(&h->in.data);
	mo_buf_done(&h->out.data);
	mo_buf_done(&h->err.data);
	if (!h->exited && h->pid > 0) {
		kill(h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	sd_event_source_disable_unref(h->child);
	mo_timer_free(h->timer);
	for (size_t i = 0; i < h->n_argv; i++)
		free(h->argv[i]);
	free(h->user);
	free(h->anchors);
	free(h);
}

static void start_waiting(struct helpers *s);

/* fn is called last, when nothing of the helper is left. */
static void finish(struct helper *h, int status, const char *text)
{
	struct helpers *s = h->owner;
	helper_fn fn = h->fn;
	void *arg = h->arg;

	helper_free(h);
	start_waiting(s);
	fn(arg, status, text);
}

struct helpers *helpers_free(struct helpers *s)
{
	if (s)
		s->stopping = true;
	for (size_t i = 0; s && i < HELPERS_MAX; i++)
		if (s->all[i])
			finish(s->all[i], 503, "the controller is stopping: try again in a moment");
	free(s);
	return NULL;
}

/* First line of what the helper said that is no warning, without the program's name and without
 * the file, which nobody here gave. */
static char *reason_of(const struct mo_buf *err)
{
	const char *line = err->len ? err->data : "the plan search failed";

	for (const char *end = strchr(line, '\n'), *word = strstr(line, ": warning: ");
	     end && end[1] && word && word < end;
	     end = strchr(line, '\n'), word = strstr(line, ": warning: "))
		line = end + 1;

	if (mo_starts_with(line, "moectl: "))
		line += 8;
	if (mo_starts_with(line, "stdin:"))
		line += 6 + strspn(line + 6, " ");
	return mo_strndup(line, strcspn(line, "\n"));
}

/* Which of its limits ended the helper; NULL: none. What it cannot allocate aborts it. */
static const char *limit_of(const struct helper *h)
{
	int signal = WIFSIGNALED(h->status) ? WTERMSIG(h->status) : 0;

	if (h->large)
		return "the plan search answered more than 8 MiB: ask for fewer plans (?top=1), or "
		       "run moectl plan on your machine";
	if (h->late || signal == SIGXCPU)
		return "the plan search took longer than 60 s: give more of parallelism in the "
		       "recipe, or run moectl plan on your machine";
	if (signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS)
		return "the plan search ran out of its 4 GiB of memory: give more of parallelism "
		       "in the recipe, or run moectl plan on your machine";
	return signal ? "the plan search was killed from outside, as a machine without free memory "
			"does: try again later, or run moectl plan on your machine"
		      : NULL;
}

static void finish_when_done(struct helper *h)
{
	if (!h->exited || h->out.fd >= 0 || h->err.fd >= 0)
		return;
	bool ok = WIFEXITED(h->status) && WEXITSTATUS(h->status) == 0 && h->out.data.len;
	_cleanup_(mo_freep) char *text = ok ? mo_buf_take(&h->out.data) : reason_of(&h->err.data);
	const char *limit = limit_of(h);
	if (limit)
		finish(h, 503, limit);
	else
		finish(h,
		       ok                                                    ? 200
		       : WIFEXITED(h->status) && WEXITSTATUS(h->status) == 2 ? 422
									     : 500,
		       text);
}

static int on_readable(struct helper *h, struct channel *c)
{
	char data[16384];
	ssize_t n = mo_read(c->fd, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0 && c->data.len + (size_t)n <= c->max) {
		mo_buf_add(&c->data, data, (size_t)n);
		return 0;
	}
	channel_close(c);
	if (n > 0) {
		h->large = true;
		kill(h->pid, SIGKILL);
	}
	finish_when_done(h);
	return 0;
}

static int on_out(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct helper *h = userdata;

	return on_readable(h, &h->out);
}

static int on_err(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct helper *h = userdata;

	return on_readable(h, &h->err);
}

static int on_writable(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct channel *c = &((struct helper *)userdata)->in;
	ssize_t n = mo_write(fd, c->data.data + c->done, c->data.len - c->done);

	if (n > 0)
		c->done += (size_t)n;
	if (c->done == c->data.len || (n < 0 && errno != EAGAIN && errno != EINTR))
		channel_close(c);
	return 0;
}

static int on_exit_status(sd_event_source *s, const siginfo_t *si, void *userdata)
{
	struct helper *h = userdata;

	h->exited = true;
	h->status = si->si_code == CLD_EXITED ? si->si_status << 8 : si->si_status;
	finish_when_done(h);
	return 0;
}

static void on_time(void *arg)
{
	struct helper *h = arg;

	if (!h->runs) {
		finish(h, 429, HELPER_BUSY);
		return;
	}
	h->late = true;
	kill(h->pid, SIGKILL);
}

static int spawn(struct helper *h, const char *program, char *const argv[], int in, int out,
		 int err, int anchors)
{
	_cleanup_(mo_freep) char *data =
		getenv("MOE_DATA_DIR") ? mo_printf("MOE_DATA_DIR=%s", getenv("MOE_DATA_DIR"))
				       : NULL;
	char *const env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8",
			      (char *)"NO_COLOR=1", data, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, err, 2);
	if (anchors >= 0)
		posix_spawn_file_actions_adddup2(&files, anchors, ANCHORS_FD);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int r = -posix_spawn(&h->pid, program, &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (r < 0) {
		h->pid = 0;
		return r;
	}
	const struct rlimit cpu = { CPU_S, CPU_S + 5 }, core = { 0, 0 };
	__attribute__((unused)) const struct rlimit memory = { MEMORY_BYTES, MEMORY_BYTES };
	prlimit(h->pid, RLIMIT_CPU, &cpu, NULL);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory alone is larger */
	prlimit(h->pid, RLIMIT_AS, &memory, NULL);
#endif
	prlimit(h->pid, RLIMIT_CORE, &core, NULL);
	return 0;
}

/* Makes the pipe's end for us nonblocking; *ret_child is the child's. */
static int make_pipe(bool child_reads, int *ret_own, int *ret_child)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	*ret_own = fd[child_reads ? 1 : 0];
	*ret_child = fd[child_reads ? 0 : 1];
	return fcntl(*ret_own, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* A memory file with the text, to be read from its start; -1 with NULL. */
static int text_file(const char *text, int *ret)
{
	*ret = -1;
	if (!text)
		return 0;
	*ret = memfd_create("anchors", MFD_CLOEXEC);
	if (*ret < 0)
		return -errno;
	int r = mo_write_all(*ret, text, strlen(text));
	return r < 0 ? r : lseek(*ret, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int start(struct helper *h)
{
	_cleanup_(mo_closep) int in = -1, out = -1, err = -1, anchors = -1;
	_cleanup_(mo_freep) char *program = mo_libexec("moectl");
	sd_event *loop = h->owner->manager->loop;

	if (!program)
		return -ENOENT;
	int r = text_file(h->anchors, &anchors);
	if (r >= 0)
		r = make_pipe(true, &h->in.fd, &in);
	if (r >= 0)
		r = make_pipe(false, &h->out.fd, &out);
	if (r >= 0)
		r = make_pipe(false, &h->err.fd, &err);
	if (r >= 0)
		r = spawn(h, program, h->argv, in, out, err, anchors);
	if (r >= 0)
		r = sd_event_add_child(loop, &h->child, h->pid, WEXITED, on_exit_status, h);
	if (r >= 0)
		r = sd_event_add_io(loop, &h->in.source, h->in.fd, EPOLLOUT, on_writable, h);
	if (r >= 0)
		r = sd_event_add_io(loop, &h->out.source, h->out.fd, EPOLLIN, on_out, h);
	if (r >= 0)
		r = sd_event_add_io(loop, &h->err.source, h->err.fd, EPOLLIN, on_err, h);
	if (r < 0)
		return r;
	h->runs = true;
	mo_timer_in(h->timer, TIME_US);
	return 0;
}

/* All that run or wait, for the core. */
static size_t searches_of(const struct helpers *s, struct search ret[static HELPERS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (s->all[i])
			ret[n++] = (struct search){ s->all[i]->id, s->all[i]->user, s->all[i]->kind,
						    s->all[i]->runs };
	return n;
}

/* The one that may start now; NULL none. */
static struct helper *next_of(const struct helpers *s)
{
	struct search all[HELPERS_MAX];
	const struct search *next = search_next(all, searches_of(s, all));

	for (size_t i = 0; next && i < HELPERS_MAX; i++)
		if (s->all[i] && s->all[i]->id == next->number)
			return s->all[i];
	return NULL;
}

static void start_waiting(struct helpers *s)
{
	struct helper *h;

	while (!s->stopping && (h = next_of(s))) {
		int r = start(h);

		if (r >= 0)
			continue;
		_cleanup_(mo_freep) char *why = mo_printf(HELPER_NOT_STARTED, strerror(-r));
		finish(h, 500, why);
	}
}

bool helper_room(const struct manager *m, const char *user, enum search_kind kind)
{
	struct search all[HELPERS_MAX];

	return search_admit(all, searches_of(m->helpers, all), user, kind);
}

static void add_words(struct helper *h, char *const words[])
{
	while (*words && h->n_argv < ARGS_MAX)
		h->argv[h->n_argv++] = mo_strdup(*words++);
}

static struct helper *helper_new(struct manager *m, const struct helper_input *input)
{
	char *const begin[] = { (char *)"moectl", (char *)"plan", (char *)"-", (char *)"--json",
				NULL };
	/* ANCHORS_FD */
	char *const anchors[] = { (char *)"--anchor", (char *)"/dev/fd/3", NULL };
	struct helper *h = mo_alloc(sizeof(*h));
	size_t slot = 0;

	while (m->helpers->all[slot])
		slot++;
	m->helpers->all[slot] = h;
	h->owner = m->helpers;
	h->in.fd = h->out.fd = h->err.fd = -1;
	h->out.max = OUTPUT_MAX;
	h->err.max = ERRORS_MAX;
	h->id = ++m->helpers->last_id;
	h->kind = input->kind;
	h->user = mo_strdup(input->user);
	h->anchors = mo_strdup(input->anchors);
	mo_buf_add(&h->in.data, input->recipe, input->n);
	add_words(h, begin);
	if (input->anchors)
		add_words(h, anchors);
	add_words(h, input->options);
	return h;
}

int helper_plan(struct manager *m, const struct helper_input *input, helper_fn fn, void *arg,
		uint64_t *ret_id)
{
	if (!helper_room(m, input->user, input->kind))
		return -EBUSY;
	struct helper *h = helper_new(m, input);
	int r = mo_timer_new(m->loop, on_time, h, &h->timer);
	if (r >= 0 && next_of(m->helpers) == h)
		r = start(h);
	else if (r >= 0)
		mo_timer_in(h->timer, WAIT_US);
	if (r < 0) {
		helper_free(h);
		return r;
	}
	h->fn = fn;
	h->arg = arg;
	*ret_id = h->id;
	return 0;
}

void helper_cancel(struct manager *m, uint64_t id)
{
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (m->helpers->all[i] && m->helpers->all[i]->id == id)
			helper_free(m->helpers->all[i]);
	start_waiting(m->helpers);
}
