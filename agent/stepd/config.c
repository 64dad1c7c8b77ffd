/* The engine's own configuration, read where the ranks will run (launch.config): only here are the files, and the variables that
 * engine.prepare mapped. moe-config does it as the job's user, with the environment and in the directory of the node's first rank,
 * because file systems hang and files are hostile. What the engine could not load ends the launch here, with the reason, and not in
 * hundreds of ranks; what could not be told in time does not: the record then has none. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/stepd/prepare.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/model/mask.h"
#include "lib/wire/json.h"

#define DEADLINE_MS 10000
#define TOLD_MAX 2048

struct asked {
	pid_t pid;
	int64_t end_ms;
	int fds[2]; /* its output, its errors */
	struct mo_buf text[2];
};

static void asked_done(struct asked *a)
{
	for (size_t i = 0; i < 2; i++) {
		a->fds[i] = mo_close(a->fds[i]);
		mo_buf_done(&a->text[i]);
	}
}

/* moe-config lies beside this program; NULL when that cannot be said. */
static char *helper(void)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = 0;
	char *slash = strrchr(self, '/');

	return slash ? mo_printf("%.*s/moe-config", (int)(slash - self), self) : NULL;
}

/* Of the rank's, without what it reads from files: they are secrets whatever the variable's name is,
 * and what moe-config says leaves the node. Libraries and data files are found where this program
 * found its own. Caller frees the list and its texts. */
static char **environment(const struct given *g, const char *user)
{
	const char *own = getenv("LD_LIBRARY_PATH"), *data = getenv("MOE_DATA_DIR"), *ranks = NULL;
	char **env = NULL;
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++) {
		const struct env_item *item = &g->items[i];

		if (own && mo_streq(item->name, "LD_LIBRARY_PATH"))
			ranks = item->value;
		else if (data && mo_streq(item->name, "MOE_DATA_DIR"))
			continue;
		else if (item->file || item->value)
			*MO_GROW(env, n) = mo_printf("%s=%s", item->name, item->file ? MO_MASKED : item->value);
	}
	if (own)
		*MO_GROW(env, n) = mo_printf("LD_LIBRARY_PATH=%s%s%s", own, ranks ? ":" : "", ranks ? ranks : "");
	if (user)
		*MO_GROW(env, n) = mo_printf("MOE_SUBMITTED_BY=%s", user);
	if (data)
		*MO_GROW(env, n) = mo_printf("MOE_DATA_DIR=%s", data);
	*MO_GROW(env, n) = NULL;
	return env;
}

static void texts_free(char ***env)
{
	for (size_t i = 0; *env && (*env)[i]; i++)
		free((*env)[i]);
	free(*env);
}

/* FORMAT, what is to be looked for, the command. Caller frees the list and its texts. */
static char **question(const struct launch *l)
{
	char **argv = NULL;
	size_t n = 0;

	mo_strs_add(&argv, &n, "moe-config");
	mo_strs_add(&argv, &n, l->config_words ? l->config_words : "primus");
	if (l->entry)
		*MO_GROW(argv, n) = mo_printf("entry:%s", l->entry);
	if (l->config_variables)
		*MO_GROW(argv, n) = mo_printf("variables:%s", l->config_variables);
	for (size_t i = 0; i < l->n_inputs; i++)
		*MO_GROW(argv, n) = mo_printf("input:%s=%s", l->inputs[i].key, l->inputs[i].value);
	for (size_t i = 0; i < l->n_config_files; i++)
		*MO_GROW(argv, n) =
			mo_printf("file:%s=%s", l->config_files[i].key, l->config_files[i].value);
	for (size_t i = 0; i < l->n_argv; i++)
		mo_strs_add(&argv, &n, l->argv[i]);
	*MO_GROW(argv, n) = NULL;
	return argv;
}

/* The recipe as its standard input; -1: it has none, or it cannot be given, and is judged by the
 * controller alone. */
static int recipe_fd(const struct launch *l)
{
	_cleanup_(mo_closep) int fd = l->recipe ? memfd_create("recipe", MFD_CLOEXEC) : -1;

	if (fd < 0 || mo_write_all(fd, l->recipe, strlen(l->recipe)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return TAKE_FD(fd);
}

static int ask(struct stepd *s, const struct prepared *p, const char *path, struct asked *ret)
{
	const struct launch *l = &s->spool.launch;
	_cleanup_(texts_free) char **env = environment(&p->given[0], l->user);
	_cleanup_(texts_free) char **argv = question(l);
	_cleanup_(mo_closep) int recipe = recipe_fd(l);
	char *candidates[] = { (char *)path, NULL };
	struct child_plan plan = p->plans[0];
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	ret->fds[0] = out[0];
	if (pipe2(err, O_CLOEXEC) < 0) {
		close(out[1]);
		return -errno;
	}
	ret->fds[1] = err[0];
	plan.argv = argv;
	plan.envp = env;
	plan.candidates = candidates;
	plan.cpus = NULL;
	plan.mem_policy = -1;
	plan.in_fd = recipe >= 0 ? recipe : plan.in_fd;
	plan.out_fd = out[1];
	plan.err_fd = err[1];
	plan.report_fd = err[1]; /* what it could not do before the program is seen by its status */
	plan.parent = getpid();
	ret->end_ms = mo_clock_boot_us() / 1000 + DEADLINE_MS;
	ret->pid = fork();
	if (ret->pid == 0)
		child_run(&plan);
	int r = ret->pid < 0 ? -errno : 0;

	close(out[1]);
	close(err[1]);
	return r;
}

/* Until both ends are closed. -ETIMEDOUT (here and below), -EFBIG: it is killed, and the subreaper
 * takes it. What it says is heard to its end and kept as far as it fits: a refusal is none the less one
 * for being long. */
static int listen_to(struct asked *a)
{
	const size_t most[] = { MO_CONFIG_BYTES_MAX, TOLD_MAX };
	char chunk[16384];

	while (a->fds[0] >= 0 || a->fds[1] >= 0) {
		struct pollfd p[] = { { .fd = a->fds[0], .events = POLLIN },
				      { .fd = a->fds[1], .events = POLLIN } };
		int64_t left = a->end_ms - mo_clock_boot_us() / 1000;

		if (left <= 0 || poll(p, 2, (int)left) == 0)
			return -ETIMEDOUT;
		for (size_t i = 0; i < 2; i++) {
			ssize_t n = p[i].revents ? read(a->fds[i], chunk, sizeof(chunk)) : -1;

			if (p[i].revents && n == 0)
				a->fds[i] = mo_close(a->fds[i]);
			size_t room = most[i] - a->text[i].len;

			if (n > 0 && (size_t)n > room && i == 0)
				return -EFBIG;
			if (n > 0)
				mo_buf_add(&a->text[i], chunk, MO_MIN((size_t)n, room));
		}
	}
	return 0;
}

/* The controller must be able to read it: moe-config writes JSON, but what answered need not be it. */
static bool may_be_kept(const struct mo_buf *text)
{
	_cleanup_(mo_buf_done) struct mo_buf written = { 0 };

	if (!text->len || memchr(text->data, 0, text->len) || !mo_utf8_valid(text->data, text->len))
		return false;
	wire_string(text->data, &written);
	return written.len <= MO_CONFIG_BYTES_MAX;
}

static void not_kept(const struct stepd *s, const char *why)
{
	mo_log(MO_WARNING, NULL,
	       &(struct mo_log_where){
		       .job = s->spool.launch.job, .attempt = s->spool.launch.attempt, .rank = -1 },
	       "the engine's configuration is not kept with the job: %s; the ranks start without",
	       why);
}

/* Why it was not read, in words of the file system that is asked. */
static const char *unread_text(int r)
{
	return r == -EFBIG ? "it is larger than a record may be"
	       : r == -ETIMEDOUT
		       ? "its files were not read within 10 s: their file system does not answer, or it is slow"
		       : strerror(-r);
}

int config_read(struct stepd *s, const struct prepared *p, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = helper();
	_cleanup_(asked_done) struct asked a = { .fds = { -1, -1 } };
	int status = 0;

	const struct launch *l = &s->spool.launch;

	if (!l->config && !l->n_inputs)
		return 0;
	int r = path ? ask(s, p, path, &a) : -ENOENT;

	if (r == 0)
		r = listen_to(&a);
	if (r == 0)
		r = child_wait(a.pid, a.end_ms, &status);
	if (r < 0) {
		if (a.pid > 0)
			kill(a.pid, SIGKILL);
		not_kept(s, unread_text(r));
		return 0;
	}
	if (a.text[1].len == TOLD_MAX)
		a.text[1].len = mo_utf8_cut(a.text[1].data, TOLD_MAX - 1);
	if (a.text[1].data)
		a.text[1].data[a.text[1].len] = 0;
	while (a.text[1].len && a.text[1].data[a.text[1].len - 1] == '\n')
		a.text[1].data[--a.text[1].len] = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 4 && l->n_inputs)
		return mo_error_set(
			err, -EINVAL,
			"the engine's configuration on %s: %s: put it there, or name another",
			s->spool.node, a.text[1].len ? a.text[1].data : "a file is not there");
	if (!l->config && l->recipe && WIFEXITED(status) && WEXITSTATUS(status) == 2)
		return mo_error_set(err, -EINVAL, "the engine's configuration on %s: %s",
				    s->spool.node,
				    a.text[1].len ? a.text[1].data : "it is refused");
	if (!l->config)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		return mo_error_set(err, -EINVAL, "the experiment on %s: %s", s->spool.node,
				    a.text[1].len ? a.text[1].data : "it cannot be loaded");
	while (a.text[0].len && a.text[0].data[a.text[0].len - 1] == '\n')
		a.text[0].data[--a.text[0].len] = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !a.text[0].len)
		not_kept(s, WIFEXITED(status) && WEXITSTATUS(status) == 3 && a.text[1].len
				    ? a.text[1].data
				    : "moe-config did not end as it should");
	else if (!may_be_kept(&a.text[0]))
		not_kept(s, "it is no text, or larger than a record may be");
	else if (s->ranks[0].rank == 0) /* one of all nodes is kept with the job */
		s->config = mo_buf_take(&a.text[0]);
	return 0;
}
