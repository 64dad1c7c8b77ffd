/* The step's own mount namespace: moe-namespace makes it before anything of the job is started, and
 * every rank enters it between its cgroup and its user. Its number and the step's id, which it
 * holds as a file, are spooled before the first fork, so that an agent finds by them what this
 * process may leave behind: the fourth net. Without one the other three do, and it is said. */
#include "agent/stepd/namespace.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/core/stepd/box.h"
#include "agent/core/stepd/image_env.h"
#include "agent/core/stepd/namespace_words.h"
#include "agent/stepd/box.h"
#include "agent/stepd/helper.h"
#include "agent/stepd/process.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/wire/decode.h"

#define DEADLINE_US 30000000
#define LINE_MAX_BYTES 512
#define READ_BYTES 65536

/* moe-namespace while it makes it. */
struct maker {
	pid_t pid;
	struct source answer;
	int life_fd; /* it ends when this is closed */
	int64_t end_us;
	struct mo_buf text;
	bool over;
};

static int write_in(const struct stepd *s, const char *name, const char *text)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "%s", name);

	return mo_write_file(path, text, strlen(text), 0444, false);
}

/* There is none where the file system knows no locks (EBADF). */
static void take_lock(struct stepd *s, const struct maker *m)
{
	s->image_fd = process_take_fd(m->pid, BOX_IMAGE_FD);
	if (s->image_fd < 0 && s->image_fd != -EBADF)
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "the lock on the image %s could not be taken over (%s): do not remove it "
		       "while the step runs",
		       s->box->root, strerror(-s->image_fd));
}

/* It is no rank: what they have entered stays. */
static void on_holder_end(struct stepd *s, struct source *source, uint32_t events)
{
	wake_unwatch(s, source);
	if (!s->killing)
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "the container of %s that holds the image %s has ended; its ranks go on, do "
		       "not remove the container or the image while they do",
		       s->box->runtime, s->box->root);
}

static int take_holder(struct stepd *s, const struct maker *m)
{
	int fd = process_take_fd(m->pid, BOX_HOLDER_FD);

	s->holder = (struct source){ .fd = fd, .fn = on_holder_end, .owner = s };
	return fd < 0 ? fd : wake_watch(s, &s->holder, EPOLLIN);
}

/* Where the users of the box are not the node's: the namespace of theirs. */
static int take_users(struct stepd *s, const struct maker *m)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/ns/user", (int)m->pid);
	int fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);

	s->user_fd = MO_MAX(fd, 0);
	return MO_MIN(fd, 0);
}

/* Nothing of the job was started yet. */
static int take(struct stepd *s, const struct maker *m)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/%d/ns/mnt", (int)m->pid);
	_cleanup_(mo_freep) char *number = NULL;
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
	struct stat st, own;
	int r = fd < 0 ? fd : mo_stat_fd(fd, &st);

	if (r == 0)
		r = mo_stat("/proc/self/ns/mnt", &own);
	if (r == 0 && st.st_ino == own.st_ino) /* the whole machine's */
		r = -EEXIST;
	if (r < 0)
		return r;
	if (s->spool.launch.container) {
		_cleanup_(mo_freep) char *root = mo_printf("/proc/%d/root", (int)m->pid);
		s->root_fd = mo_open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
		if (s->root_fd < 0)
			return s->root_fd;
	}
	if (s->box && s->box->users > BOX_NODE)
		r = take_users(s, m);
	if (r < 0)
		return r;
	number = mo_printf("%llu\n", (unsigned long long)st.st_ino);
	r = write_in(s, "namespace", number);
	if (r == 0)
		s->mnt_fd = TAKE_FD(fd);
	if (r == 0 && s->box && s->box->holder)
		r = take_holder(s, m);
	if (r == 0 && s->box && s->box->root && !s->box->runtime && !s->box->squashfs)
		take_lock(s, m);
	return r;
}

/* Where the machine makes no namespaces at all there are no walls either, as without root, and
 * GPUs keep the numbers that they have on the node. */
static bool does_without(const struct stepd *s, bool denied)
{
	return !s->spool.launch.container && (!s->box || denied);
}

/* problem: it has none, or not as asked; cause: of the refusal. denied: the machine makes none for
 * anybody. */
static void finish(struct stepd *s, struct maker *m, char *problem, const char *cause, bool denied)
{
	struct note n;

	m->over = true;
	mo_buf_done(&m->text);
	wake_unwatch(s, &m->answer);
	m->life_fd = mo_close(m->life_fd);
	mo_desc_init(&note_desc, &n);
	bool ok = !problem || does_without(s, denied);

	if (!ok)
		n.cause = mo_strdup(cause);

	if (!ok && s->spool.launch.container)
		n.text = mo_printf("the image on %s: %s", s->spool.node, problem);
	else if (!ok)
		n.text = mo_printf("the ranks on %s cannot be kept to what is theirs: %s",
				   s->spool.node, problem);
	if (problem && ok) {
		s->spool.info.walls = false;
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = s->spool.launch.job,
					       .attempt = s->spool.launch.attempt,
					       .rank = -1 },
		       "the step has no mount namespace of its own, what escapes from its ranks "
		       "is found by its environment only%s: %s",
		       s->box ? ", and they can open every GPU of the node" : "", problem);
	}
	free(problem);
	stepd_queue(s, SE_NAMESPACE, &n)->ok = ok;
}

/* The second line, of an image; its end is there. */
static char *take_image(struct stepd *s, const char *line, size_t n)
{
	_cleanup_(image_config_done) struct image_config image;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_init(&image_config_desc, &image);
	int r = wire_decode(&image_config_desc, line, n, false, &image, &err);

	if (r < 0)
		return mo_printf("moe-namespace answered what it never says: %s",
				 mo_error_text(&err, r));
	image_apply(&image, &s->spool.launch);
	return NULL;
}

static void judge(struct stepd *s, struct maker *m)
{
	const char *first = m->text.data ? m->text.data : "";
	const char *end = memchr(first, '\n', m->text.len);
	size_t n = end ? (size_t)(end - first) : 0; /* half a line says nothing */
	const char *last = end ? memchr(end + 1, '\n', m->text.len - n - 1) : NULL;
	int error = 0;
	char *problem = namespace_problem(first, n, &error);
	bool denied = namespace_denied(first, n);
	int r = problem ? 0 : take(s, m);

	if (r < 0)
		problem = mo_printf("its number cannot be kept: %s", strerror(-r));
	else if (!problem && s->box)
		problem = box_verify(s, m->pid);
	if (!problem && s->box && s->box->root)
		problem = take_image(s, end + 1, last ? (size_t)(last - end - 1) : 0);
	finish(s, m, problem, namespace_refusal(s->spool.launch.container != NULL, error), denied);
}

/* Its answer is complete: a line, and for an image a second one. */
static bool is_complete(const struct stepd *s, const struct maker *m)
{
	const char *end = memchr(m->text.data, '\n', m->text.len);
	size_t n = end ? (size_t)(end - m->text.data) : m->text.len;

	if (!end)
		return n >= LINE_MAX_BYTES;
	if (!s->box || !s->box->root || n != 2)
		return true;
	return memchr(end + 1, '\n', m->text.len - n - 1) || m->text.len > IMAGE_CONFIG_JSON_MAX;
}

static void on_answer(struct stepd *s, struct source *source, uint32_t events)
{
	struct maker *m = source->owner;
	char chunk[READ_BYTES];
	ssize_t n = mo_read(source->fd, chunk, sizeof(chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	mo_buf_add(&m->text, chunk, n > 0 ? (size_t)n : 0);
	if (n <= 0 || is_complete(s, m))
		judge(s, m);
}

/* A hard mount whose server is away waits without end, and says nothing. */
static char *late(const struct stepd *s)
{
	const struct recipe_container *c = s->spool.launch.container;

	return mo_printf("moe-namespace has not ended after %d s%s%s%s", DEADLINE_US / 1000000,
			 c ? " with " : "", c ? c->image : "",
			 c ? ": does the disk or the server answer on which it lies, or a mount of "
			     "it?"
			   : "");
}

void namespace_tick(struct stepd *s)
{
	struct maker *m = s->maker;
	int64_t now = mo_clock_boot_us();

	if (!m || m->over)
		return;
	if (now < m->end_us) {
		stepd_tick_in(s, m->end_us - now);
		return;
	}
	process_kill(m->pid); /* the subreaper takes it */
	finish(s, m, late(s), "namespace", false);
}

static int run(struct stepd *s, struct maker *m)
{
	static const struct mo_identity as_this = { 0 };
	_cleanup_(mo_freep) char *path = stepd_helper("moe-namespace");
	_cleanup_(mo_closep) int life = -1, answer = -1;
	char *argv[] = { (char *)"moe-namespace", s->dir, NULL };
	int ours = -1, r = path ? process_pipe(0, &life, &m->life_fd) : -ENOENT;

	if (r == 0)
		r = process_pipe(0, &ours, &answer);
	if (r < 0)
		return r;
	m->answer = (struct source){ .fd = ours, .fn = on_answer, .owner = m };
	r = wake_watch(s, &m->answer, EPOLLIN);
	if (r < 0)
		return r;
	m->pid = process_program(&(struct process_program){
		.who = &as_this, .path = path, .argv = argv, .in_fd = life, .third_fd = answer });
	return m->pid < 0 ? m->pid : 0;
}

/* Who the ranks will be: an image and what is mounted in it are opened as he may. */
static int ask(struct stepd *s, struct maker *m)
{
	const struct mo_identity_rule rule = { s->spool.allow_root, s->spool.min_uid };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *cause = "user";
	int r = 0;

	if (s->spool.launch.container)
		r = mo_identity_resolve(s->spool.launch.user, &rule, &s->who, &err);
	if (r == 0) {
		cause = "image";
		r = box_of(s, &s->box, &err);
	}
	if (r < 0)
		finish(s, m, mo_strdup(mo_error_text(&err, r)), cause, false);
	return r;
}

void namespace_start(struct stepd *s)
{
	struct maker *m = s->maker = mo_alloc(sizeof(*m));
	_cleanup_(mo_freep) char *life = mo_path(s->dir, BOX_LIFE);

	m->answer.fd = m->life_fd = -1;
	m->end_us = mo_clock_boot_us() + DEADLINE_US;
	if (ask(s, m) < 0)
		return;
	if (!s->box) /* numbers are those of walls only where some are made */
		s->spool.info.walls = false;
	int r = s->box ? box_write(s) : 0;

	if (r == 0 && s->box && s->box->holder)
		r = s->life_fd = process_fifo(life);
	if (r >= 0)
		r = run(s, m);
	if (r < 0)
		finish(s, m, mo_printf("moe-namespace could not be started: %s", strerror(-r)),
		       "namespace", false);
	else
		namespace_tick(s);
}
