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
#include "agent/core/text/lines.h"
#include "agent/stepd/output.h"
#include "agent/stepd/process.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/wake.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/socket.h"

#define READ_BYTES (64 * 1024)
#define READS_PER_TURN 16 /* per stream: no stream starves the others */
#define BATCH_AFTER 4     /* wake-ups within the window */
#define BUSY_WINDOW_US 20000
#define BATCH_US 10000
#define BATCH_IDLE_TICKS 20 /* quiet ticks after which a stream goes back to epoll */
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

static int log_open(struct stepd *s, struct rank *r)
{
	_cleanup_(mo_freep) char *path =
		mo_path(s->spool.log_dir, "rank-%lld.log", (long long)r->rank);
	r->log_fd = mo_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640);
	if (r->log_fd < 0)
		return -errno;
	struct stat st;
	r->log_size = mo_stat_fd(r->log_fd, &st) == 0 ? st.st_size : 0;
	return 0;
}

/* rank-R.log becomes rank-R.log.1; rank-R.base says how many bytes came before the new file, so
 * that readers can go on by offset. */
static int log_rotate(struct stepd *s, struct rank *r)
{
	_cleanup_(mo_freep) char *path =
		mo_path(s->spool.log_dir, "rank-%lld.log", (long long)r->rank);
	_cleanup_(mo_freep) char *old =
		mo_path(s->spool.log_dir, "rank-%lld.log.1", (long long)r->rank);
	_cleanup_(mo_freep) char *base =
		mo_path(s->spool.log_dir, "rank-%lld.base", (long long)r->rank);
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld\n", (long long)(r->log_base + r->log_size));
	int e = mo_rename(path, old) < 0 ? -errno
					 : mo_write_file(base, text, (size_t)n, 0640, false);
	if (e < 0)
		return e;
	r->log_base += r->log_size;
	r->log_fd = mo_close(r->log_fd);
	return log_open(s, r);
}

static void log_failed(struct stepd *s, struct rank *r, size_t lost, int error)
{
	if (r->log_error == 0) {
		struct mo_log_where w = where(s, r);
		mo_log(MO_ERR, NULL, &w,
		       "log of rank %lld cannot be written: %s; its output is dropped until it "
		       "can: free space below %s",
		       (long long)r->rank, strerror(-error), s->spool.log_dir);
	}
	r->log_error = error;
	r->log_dropped += (int64_t)lost;
}

static void log_write(struct stepd *s, struct rank *r, const char *data, size_t n)
{
	if (n == 0)
		return;
	if (r->log_size >= s->spool.log_bytes) {
		int e = log_rotate(s, r);
		if (e < 0) {
			log_failed(s, r, n, e);
			return;
		}
	}
	if (r->log_dropped > 0) {
		char text[96];
		int len =
			snprintf(text, sizeof(text),
				 "[moe-stepd: %lld bytes of output are missing here: disk full]\n",
				 (long long)r->log_dropped);
		if (mo_write(r->log_fd, text, (size_t)len) == len) {
			r->log_size += len;
			r->log_dropped = 0;
			r->log_error = 0;
		}
	}
	ssize_t done = mo_write(r->log_fd, data, n);
	if (done > 0)
		r->log_size += done;
	if (done < (ssize_t)n)
		log_failed(s, r, n - (size_t)MO_MAX(done, 0), done < 0 ? -errno : -ENOSPC);
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

static void queue_note(const struct fact_target *t, int type, const struct line_fact *f)
{
	struct note n;
	mo_desc_init(&note_desc, &n);
	n.rank = t->r->rank;
	if (type == SE_PHASE || type == SE_READY) {
		n.phase = f->phase;
		n.iteration = f->iteration;
	}
	if (type == SE_SAMPLE) {
		n.sample = mo_alloc(sizeof(*n.sample));
		*n.sample = f->sample;
		n.sample->time = mo_clock_wall_us() / 1000 * 1000; /* times are reported in ms */
		n.sample->attempt = t->s->spool.launch.attempt;
	}
	if (type == SE_CHECKPOINT || type == SE_SAVING || type == SE_RESUMED) {
		n.iteration = f->iteration;
		n.path = f->path[0] ? mo_strdup(f->path) : NULL;
		n.text = type == SE_CHECKPOINT && f->status[0] ? mo_strdup(f->status) : NULL;
	}
	stepd_queue(t->s, type, &n);
	stepd_progress(t->s);
}

static void on_fact(void *arg, const struct line_fact *f)
{
	static const int event_of[_LINE_KIND_N] = {
		[LINE_SAMPLE] = SE_SAMPLE,    [LINE_PHASE] = SE_PHASE,
		[LINE_SAVED] = SE_CHECKPOINT, [LINE_SAVING] = SE_SAVING,
		[LINE_RESUMED] = SE_RESUMED,  [LINE_ENDED] = -1,
	};
	count_refused(arg, f);
	if (f->kind >= 0 && f->kind < _LINE_KIND_N && event_of[f->kind] >= 0)
		queue_note(arg, event_of[f->kind], f);
}

/* One datagram may tell several things; the iteration comes before the checkpoint made after it. */
static void notify_facts(const struct fact_target *t, const struct line_fact *f)
{
	if (f->ready)
		queue_note(t, SE_READY, f);
	else if (f->phase > PHASE_NONE)
		queue_note(t, SE_PHASE, f);
	if (f->kind == LINE_SAMPLE)
		queue_note(t, SE_SAMPLE, f);
	if (f->checkpoint)
		queue_note(t, SE_CHECKPOINT, f);
}

static void tail_add(struct rank *r, const char *line, size_t n)
{
	if (!r->tail) /* made before a fork, each page of it would be copied after the next one */
		r->tail = mo_alloc(sizeof(*r->tail));
	struct tail *t = r->tail;
	t->len[t->next] = (uint16_t)MO_MIN(n, (size_t)STEPD_TAIL_BYTES);
	memcpy(t->text[t->next], line, t->len[t->next]);
	t->next = (t->next + 1) % MO_TAIL_LINES;
	t->n = MO_MIN(t->n + 1, (size_t)MO_TAIL_LINES);
}

void output_tail(struct rank *r, struct note *n)
{
	const struct tail *t = r->tail;
	for (size_t i = 0; t && i < t->n; i++) {
		size_t at = (t->next + MO_TAIL_LINES - t->n + i) % MO_TAIL_LINES;
		_cleanup_(mo_freep) char *line = mo_strndup(t->text[at], t->len[at]);
		mo_strs_add(&n->tail, &n->n_tail, line);
	}
}

static void line_take(struct stepd *s, struct stream *st, const char *line, size_t n)
{
	if (n > 0 && line[n - 1] == '\r')
		n--;
	struct rank *r = st->rank;
	struct fact_target t = { s, r };
	tail_add(r, line, n);
	if (r == &s->hook) {
		if (st == &r->out && s->spool.launch.prepare_hooks)
			hooks_line(&s->hooks, line, n);
		return;
	}
	lines_feed(s->lines, line, n, s->gpus, on_fact, &t);
}

/* A state of a progress bar: text up to a carriage return that no newline follows. It is read
 * like a line, but is none that the last words of a rank should be. */
static void bar_take(struct stepd *s, struct stream *st)
{
	struct fact_target t = { s, st->rank };
	if (st->rank != &s->hook)
		lines_feed(s->lines, st->line.data, st->line.len - 1, s->gpus, on_fact, &t);
	mo_buf_add(&s->log_out, st->line.data, st->line.len);
	mo_buf_reset(&st->line);
}

/* Moves what ends in such a carriage return; the bytes taken. One that stands last may be the
 * first half of a line's end: the next bytes tell. */
static size_t take_bars(struct stepd *s, struct stream *st, const char *data, size_t n)
{
	size_t taken = 0;
	if (st->line.len > 0 && st->line.data[st->line.len - 1] == '\r' && data[0] != '\n')
		bar_take(s, st);
	for (const char *cr; taken < n && (cr = memchr(data + taken, '\r', n - taken)) &&
			     cr + 1 < data + n && cr[1] != '\n';) {
		size_t len = (size_t)(cr + 1 - (data + taken));
		if (memchr(data + taken, '\n', len) || st->line.len + len > MO_LINE_MAX)
			break;
		mo_buf_add(&st->line, data + taken, len);
		bar_take(s, st);
		taken += len;
	}
	return taken;
}

/* Splits fresh bytes at newlines; what may go into the log file now is gathered in log_out:
 * whole lines, states of progress bars, or pieces of a line that is too long to be parsed. */
static void split_lines(struct stepd *s, struct stream *st, const char *data, size_t n)
{
	while (n > 0) {
		size_t bars = st->skipping ? 0 : take_bars(s, st, data, n);
		data += bars;
		n -= bars;
		if (n == 0)
			return;
		const char *nl = memchr(data, '\n', n);
		size_t len = nl ? (size_t)(nl - data) : n, used = nl ? len + 1 : len;
		if (st->skipping) {
			st->skipping = nl == NULL;
			mo_buf_add(&s->log_out, data, used);
		} else if (nl && st->line.len == 0 && len <= MO_LINE_MAX) {
			line_take(s, st, data, len);
			mo_buf_add(&s->log_out, data, used);
		} else {
			size_t room = MO_LINE_MAX - st->line.len;
			mo_buf_add(&st->line, data, MO_MIN(len, room));
			if (nl || len >= room) {
				line_take(s, st, st->line.data, st->line.len);
				mo_buf_add(&s->log_out, st->line.data, st->line.len);
				mo_buf_add(&s->log_out, data + MO_MIN(len, room),
					   used - MO_MIN(len, room));
				mo_buf_reset(&st->line);
				st->skipping = nl == NULL;
				st->rank->long_lines += !nl || len > room;
			}
		}
		data += used;
		n -= used;
	}
}

static void stream_end(struct stepd *s, struct stream *st)
{
	if (st->source.fd < 0)
		return;
	if (st->line.len > 0) {
		line_take(s, st, st->line.data, st->line.len);
		mo_buf_add(&st->line, "\n", 1);
		log_write(s, st->rank, st->line.data, st->line.len);
		mo_buf_done(&st->line);
	}
	wake_unwatch(s, &st->source);
	st->batched = false;
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
		split_lines(s, st, chunk, (size_t)n);
		log_write(s, st->rank, s->log_out.data, s->log_out.len);
		mo_buf_reset(&s->log_out);
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
	int64_t now = mo_clock_boot_us();
	if (now - st->busy_since_us > BUSY_WINDOW_US) {
		st->busy_since_us = now;
		st->busy = 0;
	}
	if (st->source.fd < 0 || ++st->busy < BATCH_AFTER)
		return;
	st->idle_ticks = 0;
	st->batched = true;
	wake_watch(s, &st->source, 0); /* only hang-up still wakes us */
	stepd_tick_in(s, BATCH_US);
}

static void stream_tick(struct stepd *s, struct stream *st)
{
	if (!st->batched)
		return;
	st->idle_ticks = stream_read(s, st) > 0 ? 0 : st->idle_ticks + 1;
	if (st->source.fd < 0 || st->idle_ticks < BATCH_IDLE_TICKS)
		return;
	st->batched = false;
	wake_watch(s, &st->source, EPOLLIN);
}

bool output_batched(const struct stepd *s)
{
	if (s->hook.out.batched || s->hook.err.batched)
		return true;
	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].out.batched || s->ranks[i].err.batched)
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
		if (both[i]->line.len > 0)
			tail_add(r, both[i]->line.data, both[i]->line.len);
	on_notify(s, &r->notify, EPOLLIN);
	if (r->long_lines > 0) {
		struct mo_log_where w = where(s, r);
		mo_log(MO_NOTICE, NULL, &w,
		       "rank %lld wrote %lld lines of more than %d bytes: the log has them, rules "
		       "saw their beginning",
		       (long long)r->rank, (long long)r->long_lines, MO_LINE_MAX);
		r->long_lines = 0;
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
		if (n > DATAGRAM_BYTES || lines_notify(data, (size_t)n, s->gpus, &f) < 0)
			continue;
		count_refused(&t, &f);
		notify_facts(&t, &f);
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
	mo_remove_at(s->dir_fd, name, 0); /* of a dead stepd: we hold the lock */
	int fd = mo_socket_bind(s->dir_fd, name);
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
	return output_open_log(s, r, ret_out, ret_err, err);
}

void output_close(struct stepd *s, struct rank *r)
{
	stream_end(s, &r->out);
	stream_end(s, &r->err);
	r->log_fd = mo_close(r->log_fd);
}

int output_open_log(struct stepd *s, struct rank *r, int *ret_out, int *ret_err,
		    struct mo_error *err)
{
	int e = log_open(s, r);
	if (e < 0)
		return mo_error_set(err, e, "%s/rank-%lld.log: %s", s->spool.log_dir,
				    (long long)r->rank, strerror(-e));
	e = stream_open(s, &r->out, r, ret_out);
	if (e == 0)
		e = stream_open(s, &r->err, r, ret_err);
	return e < 0 ? mo_error_set(err, e, "pipe of rank %lld: %s", (long long)r->rank,
				    strerror(-e))
		     : 0;
}
