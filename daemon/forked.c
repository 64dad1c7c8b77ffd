/* See forked.h; what the child does around its work is forked_child.c's. The answer is taken only
 * when the child has ended well; what is streamed is cut where it ended. */
#include "daemon/forked.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/forked_child.h"
#include "daemon/forked_kinds.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/loop/loop.h"
#include "lib/wire/encode.h"

#define FORKS_MAX 6 /* as many as all kinds together may be */
#define PIECE (64 << 10)
#define BACKLOG_MAX (256 << 10)
#define ANSWER_MAX (16u << 20) /* of what is not streamed */

struct forked {
	struct forks *owner;
	uint64_t id, request;
	enum forked_kind kind;
	bool viewer; /* of one */
	char *user, *content_type;
	forked_done done;
	void *done_arg;
	pid_t pid;
	int fd; /* what the child writes; -1 once it was read to its end */
	sd_event_source *io, *child;
	struct mo_timer *timer;
	int status;         /* that the child said; 0 not yet */
	struct mo_buf text; /* what came and was not streamed */
	bool streams, exited, late, large;
	int exit_code, exit_signal;
};
struct forks {
	struct manager *manager;
	struct forked *running[FORKS_MAX];
	uint64_t last_id;
};

void forks_new(struct manager *m)
{
	m->forks = mo_alloc(sizeof(*m->forks));
	m->forks->manager = m;
}

static void forked_free(struct forked *f)
{
	for (size_t i = 0; i < FORKS_MAX; i++)
		if (f->owner->running[i] == f)
			f->owner->running[i] = NULL;
	sd_event_source_disable_unref(f->io);
	sd_event_source_disable_unref(f->child);
	if (f->pid > 0 && !f->exited) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
	}
	mo_close(f->fd);
	mo_timer_free(f->timer);
	mo_buf_done(&f->text);
	free(f->user);
	free(f->content_type);
	free(f);
}

/* done is called last, when nothing of the child is left. */
static void finish(struct forked *f, int status, const char *body, size_t n)
{
	struct manager *m = f->owner->manager;
	struct http_request *r = f->done ? NULL : http_find(m->http, f->request);
	forked_done done = f->done;
	void *arg = f->done_arg;

	if (r)
		http_on_gone(r, NULL, NULL);
	if (r && f->streams)
		http_stream_end(r);
	else if (r)
		http_reply(r, status, status == 200 ? f->content_type : "application/problem+json",
			   body, n, NULL);
	_cleanup_(mo_buf_done) struct mo_buf retained = f->text; /* body may be in it */
	f->text = (struct mo_buf){ 0 };
	forked_free(f);
	if (done)
		done(arg, status, body, n);
}

static void fail(struct forked *f, int status, const char *why)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *detail = mo_printf("%s: %s", forked_kinds[f->kind].what, why);

	if (f->streams)
		mo_log(MO_WARNING, NULL, NULL, "%s: what %s got is not whole", detail, f->user);
	wire_problem(status, detail, &b);
	finish(f, status, b.data, b.len);
}

struct forks *forks_free(struct forks *s)
{
	for (size_t i = 0; s && i < FORKS_MAX; i++)
		if (s->running[i])
			fail(s->running[i], 503,
			     "the controller is stopping: try again in a moment");
	free(s);
	return NULL;
}

/* What it cannot allocate aborts the child. */
static void finish_when_done(struct forked *f)
{
	const struct forked_about *k = &forked_kinds[f->kind];
	bool memory =
		f->exit_signal == SIGABRT || f->exit_signal == SIGSEGV || f->exit_signal == SIGBUS;

	if (!f->exited || f->fd >= 0)
		return;
	if (f->exit_signal == SIGXCPU && k->slow)
		fail(f, 422, k->slow);
	else if ((memory || f->large) && k->large)
		fail(f, 422, k->large);
	else if (f->late)
		fail(f, 503, "it was not done, or not taken, in time: try again");
	else if (f->exit_signal)
		fail(f, 503,
		     "its process was killed, as a machine without free memory does: try again "
		     "later");
	else if (f->exit_code || !f->status)
		fail(f, 500, f->exit_code ? strerror(f->exit_code) : "it said nothing");
	else
		finish(f, f->status, f->text.data ? f->text.data : "", f->text.len);
}

static void give_up_reading(struct forked *f)
{
	f->io = sd_event_source_disable_unref(f->io);
	f->fd = mo_close(f->fd);
}

/* Behind the status. */
static void take(struct forked *f, const char *data, size_t n)
{
	struct http_request *r = f->streams ? http_find(f->owner->manager->http, f->request) : NULL;

	if (!f->streams && f->text.len + n <= ANSWER_MAX) {
		mo_buf_add(&f->text, data, n);
	} else if (!r || http_stream_write(r, data, n) < 0) {
		f->large = !f->streams;
		kill(f->pid, SIGKILL);
		give_up_reading(f);
	} else if (http_stream_backlog(r) > BACKLOG_MAX) {
		sd_event_source_set_enabled(f->io, SD_EVENT_OFF);
	}
}

static void on_drained(void *arg, uint64_t request);

static void begin_stream(struct forked *f)
{
	struct manager *m = f->owner->manager;
	struct http_request *r = http_find(m->http, f->request);

	if (f->done || f->status != 200 || !r)
		return;
	f->streams = true;
	http_stream_start(r, f->content_type);
	http_stream_on_drained(r, on_drained, m);
}

/* How much of data the status was; n: it goes on. */
static size_t read_status(struct forked *f, const char *data, size_t n)
{
	size_t before = f->text.len, take_now = MO_MIN(n, FORKED_STATUS_BYTES - before);
	int64_t status = 0;

	mo_buf_add(&f->text, data, take_now);
	if (f->text.len < FORKED_STATUS_BYTES)
		return n;
	f->text.data[FORKED_STATUS_BYTES - 1] = '\0';
	if (mo_parse_i64(f->text.data, 200, 599, &status) < 0)
		status = 500;
	f->status = (int)status;
	mo_buf_reset(&f->text);
	begin_stream(f);
	return take_now;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct forked *f = arg;
	char piece[PIECE];
	ssize_t n = mo_read(fd, piece, sizeof(piece));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0) {
		size_t head = f->status ? 0 : read_status(f, piece, (size_t)n);
		if ((size_t)n > head)
			take(f, piece + head, (size_t)n - head);
	} else {
		give_up_reading(f);
	}
	finish_when_done(f);
	return 0;
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *arg)
{
	struct forked *f = arg;

	f->exited = true;
	f->exit_code = si->si_code == CLD_EXITED ? si->si_status : 0;
	f->exit_signal = si->si_code == CLD_EXITED ? 0 : si->si_status;
	finish_when_done(f);
	return 0;
}

static void on_time(void *arg)
{
	struct forked *f = arg;

	f->late = true;
	if (!f->exited)
		kill(f->pid, SIGKILL);
	give_up_reading(f);
	finish_when_done(f);
}

static struct forked *of_request(const struct manager *m, uint64_t request)
{
	for (size_t i = 0; i < FORKS_MAX; i++)
		if (m->forks->running[i] && !m->forks->running[i]->done &&
		    m->forks->running[i]->request == request)
			return m->forks->running[i];
	return NULL;
}

static void on_drained(void *arg, uint64_t request)
{
	struct forked *f = of_request(arg, request);

	if (f && f->io)
		sd_event_source_set_enabled(f->io, SD_EVENT_ON);
}

static void on_gone(void *arg, uint64_t request)
{
	struct forked *f = of_request(arg, request);

	if (f)
		forked_free(f);
}

/* What nobody's work takes from others: one of each user, and of viewers never all. */
static bool has_room(const struct manager *m, const struct forked_work *w)
{
	const struct forked_about *k = &forked_kinds[w->kind];
	size_t n = 0, n_viewers = 0;
	bool own = false;

	for (size_t i = 0; i < FORKS_MAX; i++) {
		const struct forked *f = m->forks->running[i];

		if (!f || f->kind != w->kind)
			continue;
		n++;
		n_viewers += f->viewer;
		own |= mo_streq(f->user, w->user);
	}
	return n < k->at_once && !(own && k->of_each_user) &&
	       (!w->viewer || n_viewers < k->of_viewers);
}

static int begin(struct manager *m, struct forked *f, const struct forked_work *w)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	f->fd = ends[0];
	f->pid = fork();
	if (f->pid == 0)
		forked_child(m, w, &forked_kinds[w->kind].limits, parent, ends[1]);
	int r = f->pid < 0 ? -errno : 0;
	mo_close(ends[1]);
	if (r >= 0 && fcntl(f->fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r >= 0)
		r = sd_event_add_child(m->loop, &f->child, f->pid, WEXITED, on_child, f);
	if (r >= 0)
		r = sd_event_add_io(m->loop, &f->io, f->fd, EPOLLIN, on_readable, f);
	if (r >= 0)
		r = mo_timer_new(m->loop, on_time, f, &f->timer);
	if (r >= 0)
		mo_timer_in(f->timer, forked_kinds[w->kind].time_us);
	return r;
}

static int start(struct manager *m, const struct forked_work *w, uint64_t *ret_id)
{
	size_t slot = 0;

	if (!has_room(m, w))
		return -EBUSY;
	while (m->forks->running[slot])
		slot++;
	struct forked *f = mo_alloc(sizeof(*f));
	f->owner = m->forks;
	f->id = ++m->forks->last_id;
	f->kind = w->kind;
	f->viewer = w->viewer;
	f->user = mo_strdup(w->user ? w->user : "an admin");
	f->content_type = mo_strdup(w->content_type);
	f->done = w->done;
	f->done_arg = w->done_arg;
	f->request = w->request;
	f->fd = -1;
	m->forks->running[slot] = f;
	int r = begin(m, f, w);
	if (r < 0) {
		forked_free(f);
		return r;
	}
	*ret_id = f->id;
	return 0;
}

bool forked_begin(struct manager *m, struct http_request *r, const struct forked_work *w,
		  uint64_t *ret_id)
{
	int e = start(m, w, ret_id);
	if (e == -EBUSY) {
		http_problem(r, 429, "%s: %s", forked_kinds[w->kind].what,
			     forked_kinds[w->kind].busy);
		return false;
	}
	if (e < 0) {
		http_problem(r, 503, "%s: %s: try again", forked_kinds[w->kind].what, strerror(-e));
		return false;
	}
	http_hold(r);
	return true;
}

int forked_alone(struct manager *m, const struct forked_work *w, uint64_t *ret_id)
{
	return start(m, w, ret_id);
}

bool forked_answer(struct manager *m, struct http_request *r, const struct forked_work *w)
{
	struct forked_work mine = *w;
	uint64_t id;

	mine.request = http_id(r);
	if (!forked_begin(m, r, &mine, &id))
		return false;
	http_on_gone(r, on_gone, m);
	return true;
}

void forked_cancel(struct manager *m, uint64_t id)
{
	for (size_t i = 0; i < FORKS_MAX; i++)
		if (m->forks->running[i] && m->forks->running[i]->id == id)
			forked_free(m->forks->running[i]);
}
