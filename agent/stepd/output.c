/* What ranks write: two pipes and one log file per rank. A pipe is always emptied; lines go
 * whole into the log file (stdout and stderr never glued), to the engine's rules and into the
 * tail that becomes evidence. A stream that wakes us too often is read by a timer instead of by
 * epoll: 10,000 lines/s cost a few wake-ups, not 10,000. When the log cannot be written, output
 * is counted and dropped, never kept back: ranks must not wait for a disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/core/stepd/fact_events.h"
#include "agent/core/text/lines.h"
#include "agent/core/text/notify.h"
#include "agent/stepd/output.h"
#include "agent/stepd/process.h"
#include "agent/stepd/rank_log.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/socket.h"

#define READ_BYTES (64 * 1024)
#define READS_PER_TURN 16 /* per stream: no stream starves the others */
#define BATCH_US 10000
/* asked for, so that a rank is not held up between two ticks */
#define PIPE_BYTES (1024 * 1024)
#define DATAGRAM_BYTES 8192
#define DATAGRAMS_PER_TURN 256

static struct mo_log_where where(const struct stepd *s, const struct rank *r)
{
	return (struct mo_log_where){ .job = s->spool.launch.job,
				      .attempt = s->spool.launch.attempt,
				      .rank = r->rank,
				      .node = s->spool.node };
}

struct fact_target {
	struct stepd *s;
	struct rank *r;
};

/* Reported at the first and at the rank's end: an engine that is wrong once is wrong at every
 * iteration. */
static void count_refused(const struct fact_target *t, const struct line_fact *f)
{
	if (f->refused && t->r->values_refused == 0) {
		struct mo_log_where w = where(t->s, t->r);
		mo_log(MO_WARNING, NULL, &w,
		       "rank %lld reports impossible values (negative, or far beyond any machine): "
		       "they are left out; correct what the engine prints or sends",
		       (long long)t->r->rank);
	}
	t->r->values_refused += f->refused;
}

static void queue_facts(const struct fact_target *t, const struct line_fact *f, const int *events,
			size_t n)
{
	count_refused(t, f);
	for (size_t i = 0; i < n; i++) {
		struct note note;

		fact_note(events[i], f, t->r->rank, t->s->spool.launch.attempt, mo_clock_wall_us(),
			  &note);
		stepd_queue(t->s, events[i], &note)->busy_ms = f->busy_ms;
		stepd_progress(t->s);
	}
}

static void on_fact(void *arg, const struct line_fact *f)
{
	int events[FACT_EVENTS_MAX];

	queue_facts(arg, f, events, fact_events_of_line(f, events));
}

/* Made before a fork, each page of it would be copied after the next one. */
static struct tail *tail_of(struct rank *r)
{
	if (!r->tail)
		r->tail = mo_alloc(sizeof(*r->tail));
	return r->tail;
}

static void keep_tail(struct rank *r, const char *line, size_t n)
{
	tail_add(tail_of(r), line, n);
}

void output_error(struct rank *r, const char *text)
{
	tail_error(tail_of(r), text);
}

void output_tail(struct rank *r, struct note *n)
{
	if (r->tail)
		tail_lines(r->tail, &n->tail, &n->n_tail);
}

struct split_target {
	struct stepd *s;
	struct stream *st;
};

static void on_split(void *arg, enum split_kind kind, const char *line, size_t n)
{
	const struct split_target *of = arg;
	struct stepd *s = of->s;
	struct rank *r = of->st->rank;
	struct fact_target t = { s, r };

	if (kind == SPLIT_LINE)
		keep_tail(r, line, n);
	if (r != &s->hook)
		lines_feed(s->lines, line, n, s->gpus, on_fact, &t);
	else if (kind == SPLIT_LINE && of->st == &r->out && s->spool.launch.prepare_hooks)
		hooks_line(&s->hooks, line, n);
}

static void log_split(struct stepd *s, struct rank *r)
{
	rank_log_write(s, r, s->log_out.data, s->log_out.len);
	mo_buf_reset(&s->log_out);
}

static void stream_end(struct stepd *s, struct stream *st)
{
	if (st->source.fd < 0)
		return;
	split_end(&st->split, &s->log_out, on_split, &(struct split_target){ s, st });
	log_split(s, st->rank);
	wake_unwatch(s, &st->source);
	st->pace.batched = false;
}

/* Returns bytes read; the stream is closed at its end. */
static size_t stream_read(struct stepd *s, struct stream *st)
{
	static char chunk[READ_BYTES]; /* one thread, too large for the stack of every call */
	size_t total = 0;
	for (int i = 0; i < READS_PER_TURN && st->source.fd >= 0; i++) {
		ssize_t n = mo_read(st->source.fd, chunk, sizeof(chunk));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			stream_end(s, st);
			break;
		}
		split_bytes(&st->split, chunk, (size_t)n, &s->log_out, on_split,
			    &(struct split_target){ s, st });
		log_split(s, st->rank);
		total += (size_t)n;
		if ((size_t)n < sizeof(chunk))
			break;
	}
	return total;
}

void on_stream(struct stepd *s, struct source *source, uint32_t events)
{
	struct stream *st = source->owner;
	stream_read(s, st);
	if (st->source.fd < 0 || !pace_woken(&st->pace, mo_clock_boot_us()))
		return;
	wake_watch(s, &st->source, 0); /* only hang-up still wakes us */
	stepd_tick_in(s, BATCH_US);
}

static void stream_tick(struct stepd *s, struct stream *st)
{
	if (!st->pace.batched)
		return;
	bool got = stream_read(s, st) > 0;
	if (st->source.fd >= 0 && pace_ticked(&st->pace, got))
		wake_watch(s, &st->source, EPOLLIN);
}

bool output_batched(const struct stepd *s)
{
	if (s->hook.out.pace.batched || s->hook.err.pace.batched)
		return true;
	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].out.pace.batched || s->ranks[i].err.pace.batched)
			return true;
	return false;
}

void output_tick(struct stepd *s)
{
	stream_tick(s, &s->hook.out);
	stream_tick(s, &s->hook.err);
	for (size_t i = 0; i < s->n_ranks; i++) {
		stream_tick(s, &s->ranks[i].out);
		stream_tick(s, &s->ranks[i].err);
	}
	if (output_batched(s))
		stepd_tick_in(s, BATCH_US);
}

/* Bounded: a child of the rank may still be writing, and the exit note must not wait for it. */
void output_drain(struct stepd *s, struct rank *r)
{
	for (int i = 0; i < 4 && stream_read(s, &r->out) + stream_read(s, &r->err) > 0; i++)
		continue;
	struct stream *both[] = { &r->out, &r->err };
	for (size_t i = 0; i < ELEMENTSOF(both); i++)
		if (both[i]->split.line.len > 0)
			keep_tail(r, both[i]->split.line.data, both[i]->split.line.len);
	on_notify(s, &r->notify, EPOLLIN);
	int64_t too_long = r->out.split.too_long + r->err.split.too_long;
	if (too_long > 0) {
		struct mo_log_where w = where(s, r);
		mo_log(MO_NOTICE, NULL, &w,
		       "rank %lld wrote %lld lines of more than %d bytes: the log has them, rules "
		       "saw their beginning",
		       (long long)r->rank, (long long)too_long, MO_LINE_MAX);
		r->out.split.too_long = r->err.split.too_long = 0;
	}
	if (r->values_refused > 1) {
		struct mo_log_where w = where(s, r);
		mo_log(MO_WARNING, NULL, &w, "rank %lld reported %lld impossible values",
		       (long long)r->rank, (long long)r->values_refused);
	}
}

void on_notify(struct stepd *s, struct source *source, uint32_t events)
{
	struct rank *r = source->owner;
	struct fact_target t = { s, r };
	for (int i = 0; i < DATAGRAMS_PER_TURN && source->fd >= 0; i++) {
		char data[DATAGRAM_BYTES + 1];
		ssize_t n = mo_socket_receive(source->fd, data, sizeof(data));
		if (n < 0)
			return;
		struct line_fact f;
		if (n > DATAGRAM_BYTES || notify_read(data, (size_t)n, s->gpus, &f) < 0)
			continue;
		int each[FACT_EVENTS_MAX];
		queue_facts(&t, &f, each, fact_events_of_datagram(&f, each));
	}
}

static int stream_open(struct stepd *s, struct stream *st, struct rank *r, int *ret_child_end)
{
	int ours, e = process_pipe(PIPE_BYTES, &ours, ret_child_end);
	if (e < 0)
		return e;
	*st = (struct stream){ .rank = r, .source = { .fd = ours, .fn = on_stream, .owner = st } };
	return wake_watch(s, &st->source, EPOLLIN);
}

static int notify_open(struct stepd *s, struct rank *r)
{
	char name[32];
	r->notify = (struct source){ .fd = -1, .fn = on_notify, .owner = r };
	snprintf(name, sizeof(name), "notify.%lld", (long long)r->rank);
	int fd = mo_socket_bind(s->dir_fd, name);
	if (fd == -EADDRINUSE) { /* of a dead stepd: we hold the lock */
		mo_remove_at(s->dir_fd, name, 0);
		fd = mo_socket_bind(s->dir_fd, name);
	}
	if (fd < 0)
		return fd;
	r->notify.fd = fd;
	_cleanup_(mo_freep) char *path = mo_printf("/proc/self/fd/%d/%s", s->dir_fd, name);
	if (s->who.change && mo_chown(path, s->who.uid, s->who.gid) < 0)
		return -errno;
	return wake_watch(s, &r->notify, EPOLLIN);
}

int output_open(struct stepd *s, struct rank *r, int *ret_out, int *ret_err, struct mo_error *err)
{
	int e = notify_open(s, r);
	if (e < 0)
		return mo_error_set(err, e, "%s/notify.%lld: %s", s->dir, (long long)r->rank,
				    strerror(-e));
	return output_open_pipes(s, r, ret_out, ret_err, err);
}

void output_close(struct stepd *s, struct rank *r)
{
	stream_end(s, &r->out);
	stream_end(s, &r->err);
	r->log_fd = mo_close(r->log_fd);
}

int output_open_pipes(struct stepd *s, struct rank *r, int *ret_out, int *ret_err,
		      struct mo_error *err)
{
	int e = stream_open(s, &r->out, r, ret_out);
	if (e == 0)
		e = stream_open(s, &r->err, r, ret_err);
	return e < 0 ? mo_error_set(err, e, "pipe of rank %lld: %s", (long long)r->rank,
				    strerror(-e))
		     : 0;
}

int output_open_log(struct stepd *s, struct rank *r, struct mo_error *err)
{
	int e = rank_log_open(s, r);
	return e < 0 ? mo_error_set(err, e, "%s/rank-%lld.log: %s", s->spool.log_dir,
				    (long long)r->rank, strerror(-e))
		     : 0;
}
