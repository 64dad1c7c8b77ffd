/* POST /v1/plan and /v1/validate. A plan search may take seconds, so it runs as `moectl plan - --json` in a helper process: two at once (then 429), limits on CPU time, memory, answer size and
 * time, killed and forgotten when the client leaves or the time is over. The recipe goes in by a pipe, never by a command line. */
#include "daemon/plan.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/api.h"
#include "daemon/spec.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define HELPERS_MAX 2
#define TIME_US (60 * 1000000LL)
#define CPU_S 60
#define MEMORY_BYTES (4LL << 30)
#define OUTPUT_MAX (8u << 20)
#define ERRORS_MAX (16u << 10)
#define ARGS_MAX 16

/* in: the recipe still to be written; out, err: what came. fds are -1 when closed. */
struct channel { int fd; struct mo_buf data; size_t done, max; sd_event_source *source; };
struct helper {
	struct helpers *owner;
	uint64_t request;
	pid_t pid;
	sd_event_source *child;
	struct mo_timer *timer;
	struct channel in, out, err;
	bool exited, late;
	int status;
};
struct helpers { struct manager *manager; struct helper *running[HELPERS_MAX]; };

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
		if (h->owner->running[i] == h)
			h->owner->running[i] = NULL;
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
	free(h);
}

struct helpers *helpers_free(struct helpers *s)
{
	for (size_t i = 0; s && i < HELPERS_MAX; i++)
		if (s->running[i])
			helper_free(s->running[i]);
	free(s);
	return NULL;
}

/* "moectl: plan: what: why" -> "what: why" for a problem document that says plan already. */
static const char *plain(const char *line)
{
	return mo_starts_with(line, "moectl: ") ? line + 8 : line;
}

static void answer(struct helper *h, struct http_request *r)
{
	struct mo_buf *out = &h->out.data, *err = &h->err.data;

	if (h->late || (WIFSIGNALED(h->status) && WTERMSIG(h->status) == SIGKILL)) {
		http_problem(r, 503, "the plan search took too long: give more of parallelism in the recipe, or run moectl plan on your machine");
	} else if (WIFEXITED(h->status) && WEXITSTATUS(h->status) == 0 && out->len) {
		api_send(r, 200, out);
	} else {
		if (err->len)
			err->data[strcspn(err->data, "\n")] = 0;
		http_problem(r, WIFEXITED(h->status) && WEXITSTATUS(h->status) == 2 ? 422 : 500, "%s", err->len ? plain(err->data) : "the plan search failed");
	}
}

static void finish_when_done(struct helper *h)
{
	if (!h->exited || h->out.fd >= 0 || h->err.fd >= 0)
		return;
	struct http_request *r = http_find(h->owner->manager->http, h->request);
	if (r)
		answer(h, r);
	helper_free(h);
}

static int on_readable(struct helper *h, struct channel *c)
{
	char data[16384];
	ssize_t n = read(c->fd, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0 && c->data.len + (size_t)n <= c->max) {
		mo_buf_add(&c->data, data, (size_t)n);
		return 0;
	}
	channel_close(c);
	if (n > 0)
		kill(h->pid, SIGKILL);
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
	ssize_t n = write(fd, c->data.data + c->done, c->data.len - c->done);

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

	h->late = true;
	kill(h->pid, SIGKILL);
}

static void on_gone(void *arg, uint64_t id)
{
	struct helpers *s = ((struct manager *)arg)->helpers;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (s->running[i] && s->running[i]->request == id)
			helper_free(s->running[i]);
}

static int spawn(struct helper *h, const char *program, char *const argv[], int in, int out, int err)
{
	_cleanup_(mo_freep) char *data = getenv("MOE_DATA_DIR") ? mo_printf("MOE_DATA_DIR=%s", getenv("MOE_DATA_DIR")) : NULL;
	char *const env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8", (char *)"NO_COLOR=1", data, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, err, 2);
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
	const struct rlimit cpu = { CPU_S, CPU_S }, memory = { MEMORY_BYTES, MEMORY_BYTES }, core = { 0, 0 };
	prlimit(h->pid, RLIMIT_CPU, &cpu, NULL);
	prlimit(h->pid, RLIMIT_AS, &memory, NULL);
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

static int start(struct manager *m, struct helper *h, char *const argv[], const char *text, size_t n)
{
	_cleanup_(mo_closep) int in = -1, out = -1, err = -1;
	_cleanup_(mo_freep) char *program = mo_libexec("moectl");

	if (!program)
		return -ENOENT;
	int r = make_pipe(true, &h->in.fd, &in);
	if (r >= 0)
		r = make_pipe(false, &h->out.fd, &out);
	if (r >= 0)
		r = make_pipe(false, &h->err.fd, &err);
	if (r >= 0)
		r = spawn(h, program, argv, in, out, err);
	if (r >= 0)
		r = sd_event_add_child(m->loop, &h->child, h->pid, WEXITED, on_exit_status, h);
	if (r >= 0)
		r = sd_event_add_io(m->loop, &h->in.source, h->in.fd, EPOLLOUT, on_writable, h);
	if (r >= 0)
		r = sd_event_add_io(m->loop, &h->out.source, h->out.fd, EPOLLIN, on_out, h);
	if (r >= 0)
		r = sd_event_add_io(m->loop, &h->err.source, h->err.fd, EPOLLIN, on_err, h);
	if (r >= 0)
		r = mo_timer_new(m->loop, on_time, h, &h->timer);
	if (r < 0)
		return r;
	mo_buf_add(&h->in.data, text, n);
	h->out.max = OUTPUT_MAX;
	h->err.max = ERRORS_MAX;
	mo_timer_in(h->timer, TIME_US);
	return 0;
}

/* Options of the search from the query string: only what is checked here reaches the command line. false after 400. */
static bool read_options(struct http_request *r, char **argv, size_t *n, struct mo_buf *words)
{
	static const char *const numbers[] = { "gpus", "top" };
	const char *gpu = http_query(r, "gpu"), *scale = http_query(r, "scale");
	int64_t v;

	for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
		if (!api_int(r, numbers[i], 1, 1 << 20, MO_NONE, &v))
			return false;
		if (v != MO_NONE)
			mo_buf_printf(words, "--%s=%lld\n", numbers[i], (long long)v);
	}
	if (gpu && !mo_name_valid(gpu)) {
		http_problem(r, 400, "gpu=%.40s: must be a GPU of the catalogue such as mi355x", gpu);
		return false;
	}
	if (gpu)
		mo_buf_printf(words, "--gpu=%s\n", gpu);
	if (scale && (strlen(scale) > 200 || strspn(scale, "0123456789,") != strlen(scale))) {
		http_problem(r, 400, "scale: must be numbers of GPUs separated by commas");
		return false;
	}
	if (scale)
		mo_buf_printf(words, "--scale=%s\n", scale);
	for (char *p = words->data; p && *p && *n < ARGS_MAX - 1;) {
		argv[(*n)++] = p;
		p = strchr(p, '\n');
		*p++ = 0;
	}
	argv[*n] = NULL;
	return true;
}

void api_plan(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	char *argv[ARGS_MAX] = { (char *)"moectl", (char *)"plan", (char *)"-", (char *)"--json" };
	_cleanup_(mo_buf_done) struct mo_buf words = {0};
	size_t n_args = 4, n, slot = 0;
	const char *text = http_body(r, &n);

	struct submit *spec = spec_make(m, r, text, n);
	mo_desc_free(&submit_desc, spec);
	if (!spec || !read_options(r, argv, &n_args, &words))
		return;
	while (slot < HELPERS_MAX && m->helpers->running[slot])
		slot++;
	if (slot == HELPERS_MAX) {
		http_problem(r, 429, "%d plan searches are running already: try again in a moment, or run moectl plan on your machine", HELPERS_MAX);
		return;
	}
	struct helper *h = mo_alloc(sizeof(*h));
	h->owner = m->helpers;
	h->in.fd = h->out.fd = h->err.fd = -1;
	h->request = http_id(r);
	m->helpers->running[slot] = h;
	int e = start(m, h, argv, text, n);
	if (e < 0) {
		helper_free(h);
		http_problem(r, 500, "the plan search could not be started: %s", strerror(-e));
		return;
	}
	http_on_gone(r, on_gone, m);
}

void api_validate(void *arg, struct http_request *r)
{
	size_t n;
	const char *text = http_body(r, &n);
	struct submit *spec = spec_make(arg, r, text, n);

	if (!spec)
		return;
	http_reply(r, 200, "application/json", "{\"valid\":true}", 14, NULL);
	mo_desc_free(&submit_desc, spec);
}
