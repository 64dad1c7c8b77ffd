/* Queries: the environments that stepd recorded, and logs of ranks from any place in the file;
 * removal of old logs. An offset counts all bytes the rank ever wrote, so that a reader goes on
 * across a rotation: rank-R.base holds how many came before the present file. A query that finds
 * nothing new waits, at most wait_ms, without holding anything up. */
#include "agent/logs.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/link.h"
#include "agent/log_times.h"
#include "agent/paths.h"
#include "agent/step_dir.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/loop/loop.h"

#define ANSWER_BYTES (256 * 1024)
#define ENV_BYTES_MAX (8 * 1024 * 1024)
#define PIECE_BYTES (1024 * 1024)      /* read at once when the last lines are searched */
#define SEARCH_BYTES (8 * PIECE_BYTES) /* searched in one turn, a few milliseconds */
#define SEARCH_AGAIN_US 1000
#define LINE_BYTES 4096 /* a line begun earlier is looked for the end of */
#define POLL_US 100000
#define WAIT_MAX_MS 60000
#define QUERIES_MAX 256

struct query {
	struct command *command;
	/* offset -1: where the last lines begin, which is searched */
	int64_t offset, deadline_us;
	/* wall clock: only what was written then or later; MO_NONE: everything, or the place was
	 * found */
	int64_t since_us;
	/* that far back, newlines found, and the end from which it began; searched_to MO_NONE:
	 * not begun */
	int64_t searched_to, seen, counted_from;
};
struct logs {
	struct manager *m;
	struct mo_timer *timer;
	struct query *queries;
	size_t n_queries;
	int64_t search_left; /* bytes that may still be searched in this turn */
};

/* The two files of one rank as one range of bytes: [first, base) is rank-R.log.1, [base, end) is
 * rank-R.log. */
struct span {
	int old_fd, fd;
	int64_t first, base, end;
};

static void span_close(struct span *s)
{
	mo_close(s->old_fd);
	mo_close(s->fd);
}

static int open_sized(const char *dir, const char *name, int64_t *ret_size)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	_cleanup_(mo_closep) int fd =
		mo_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	if (fd < 0 || mo_stat_fd(fd, &st) < 0)
		return -errno;
	*ret_size = st.st_size;
	return TAKE_FD(fd);
}

static int span_open(const struct manager *m, const struct command *c, struct span *ret)
{
	_cleanup_(mo_freep) char *dir = path_logs(m->config, c->job, c->attempt);
	_cleanup_(mo_freep) char *name = mo_printf("rank-%lld.log", (long long)c->rank);
	_cleanup_(mo_freep) char *old = mo_printf("rank-%lld.log.1", (long long)c->rank);
	_cleanup_(mo_freep) char *base_path = mo_path(dir, "rank-%lld.base", (long long)c->rank);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t base = 0, size = 0, old_size = 0;
	int fd = open_sized(dir, name, &size);
	if (fd < 0)
		return fd;
	if (mo_read_file(base_path, 64, &b) == 0 && b.data) {
		b.data[strcspn(b.data, "\n")] = '\0';
		mo_parse_i64(b.data, 0, INT64_MAX, &base);
	}
	int old_fd = base > 0 ? open_sized(dir, old, &old_size) : -1;
	*ret = (struct span){ .old_fd = MO_MAX(old_fd, -1),
			      .fd = fd,
			      .first = base - (old_fd >= 0 ? old_size : 0),
			      .base = base,
			      .end = base + size };
	return 0;
}

/* Up to n bytes from offset; never across the border of the two files, nor what was written since
 * span_open(). */
static ssize_t span_read(const struct span *s, int64_t offset, char *data, size_t n)
{
	if (offset < s->base)
		return mo_read_at(s->old_fd, data, MO_MIN(n, (size_t)(s->base - offset)),
				  offset - s->first);
	return mo_read_at(s->fd, data, MO_MIN(n, (size_t)(s->end - offset)), offset - s->base);
}

/* Searches backwards for where the last `lines` lines begin, one piece of the file at a time: a
 * long log is searched over several turns of the loop, never cut. True when q->offset is
 * that place. */
static bool find_tail(struct logs *l, struct query *q, const struct span *s)
{
	_cleanup_(mo_freep) char *data = mo_alloc(PIECE_BYTES);
	if (q->searched_to == MO_NONE)
		q->searched_to = q->counted_from = s->end;
	while (q->command->lines > 0 && q->searched_to > s->first) {
		int64_t end = q->searched_to,
			from = MO_MAX(end - PIECE_BYTES, end > s->base ? s->base : s->first);
		if (l->search_left < end - from)
			return false;
		ssize_t n = span_read(s, from, data, (size_t)(end - from));
		if (n < end - from)
			break; /* rotated or cut just now: what follows is there */
		/* the newline that ends the last line counts for it */
		for (const char *nl; (nl = memrchr(data, '\n', (size_t)n)); n = nl - data)
			if (from + (nl - data) + 1 < q->counted_from &&
			    ++q->seen == q->command->lines) {
				q->offset = from + (nl - data) + 1;
				return true;
			}
		l->search_left -= end - from;
		q->searched_to = from;
	}
	q->offset = q->command->lines > 0 ? q->searched_to : q->counted_from;
	return true;
}

/* Nothing more will come. A step whose entry could not be read when its supervisor was adopted
 * has no ranks here: it lives until it is gone. */
static bool rank_over(const struct manager *m, const struct command *c)
{
	for (size_t i = 0; i < m->n_steps; i++) {
		const struct step_dir *d = m->steps[i];
		int64_t local = c->rank - d->spool.launch.first_rank;
		if (d->job == c->job && d->attempt == c->attempt)
			return d->gone ||
			       (d->n_exited > 0 &&
				(local < 0 || (size_t)local >= d->n_exited || d->exited[local]));
	}
	return true;
}

/* Bytes to cut off so that no character is split, when more will come. */
static size_t split_character(const char *data, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)data[n - back];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return need > back ? back : 0;
	}
	return 0;
}

/* A NUL byte would end the text: shown like other bytes that are no text (lib/wire does those). */
static char *as_text(const char *data, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	for (size_t at = 0; at < n; at++) {
		size_t len = strnlen(data + at, n - at);
		mo_buf_add(&b, data + at, len);
		at += len;
		if (at < n)
			mo_buf_str(&b, "\xef\xbf\xbd");
	}
	return mo_buf_take(&b);
}

static void answer(struct logs *l, const struct query *q, const char *error, char *text, bool more,
		   bool end)
{
	struct query_answer a;
	mo_desc_init(&query_answer_desc, &a);
	a.node = mo_strdup(l->m->config->node);
	a.query = q->command->query;
	a.error = mo_strdup(error);
	a.text = text ? text : mo_strdup("");
	a.offset = q->offset;
	a.more = more;
	a.end = end;
	link_answer(l->m->link, &a);
	mo_desc_done(&query_answer_desc, &a);
}

/* The place moves on to what was written since the time that is asked for, where a line begins.
 * False: no times are known. */
static bool find_time(struct logs *l, struct query *q, const struct span *s)
{
	const struct command *c = q->command;
	_cleanup_(mo_freep) char *dir = path_logs(l->m->config, c->job, c->attempt);
	int64_t at = log_times_find(dir, c->rank, q->since_us);
	char line[LINE_BYTES];

	q->since_us = MO_NONE;
	if (at < 0 && s->end > s->first)
		return false;
	if (at > s->first && at < s->end) {
		ssize_t n = span_read(s, at - 1, line, sizeof(line));
		const char *nl = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;

		at += nl ? nl - line : 0;
	}
	q->offset = MO_MAX(q->offset, at);
	return true;
}

/* Where an answer ends at the latest: lines that were written after the last ones were counted are
 * more than was asked for; a follower asks for them next. */
static int64_t answer_end(const struct query *q, const struct span *s)
{
	return q->searched_to != MO_NONE && q->counted_from > q->offset
		       ? MO_MIN(q->counted_from, s->end)
		       : s->end;
}

/* True when it was answered. */
static bool try_answer(struct logs *l, struct query *q)
{
	const struct command *c = q->command;
	bool over = rank_over(l->m, c), late = mo_clock_boot_us() >= q->deadline_us;
	_cleanup_(span_close) struct span s = { .old_fd = -1, .fd = -1 };
	int r = span_open(l->m, c, &s);
	if (r < 0 && !over && !late && r == -ENOENT)
		return false; /* it has not started yet */
	if (r < 0) {
		_cleanup_(mo_freep) char *text =
			mo_printf("no log of rank %lld, attempt %lld of j-%lld on %s: %s",
				  (long long)c->rank, (long long)c->attempt, (long long)c->job,
				  l->m->config->node, strerror(-r));
		answer(l, q, over ? text : NULL, NULL, false, over);
		return true;
	}
	if (q->offset < 0 && !find_tail(l, q, &s))
		return false;
	if (q->since_us != MO_NONE && !find_time(l, q, &s)) {
		answer(l, q,
		       "it is not known when its lines were written (its supervisor may be "
		       "older); ask for the last lines instead",
		       NULL, false, true);
		return true;
	}
	q->offset = MO_MIN(MO_MAX(q->offset, s.first), s.end);
	int64_t end = answer_end(q, &s);
	_cleanup_(mo_freep) char *data = mo_alloc(ANSWER_BYTES);
	ssize_t n = q->offset < end ? span_read(&s, q->offset, data,
						MO_MIN((size_t)(end - q->offset), ANSWER_BYTES))
				    : 0;
	bool last = n >= 0 && q->offset + n >= s.end, more = n > 0 && q->offset + n < end;
	if (n > 0 && !(last && over))
		n -= (ssize_t)split_character(data, (size_t)n);
	if (n <= 0 && !over && !late)
		return false;
	q->offset += MO_MAX(n, 0);
	answer(l, q, NULL, n > 0 ? as_text(data, (size_t)n) : NULL, more, last && over);
	return true;
}

static void remove_query(struct logs *l, size_t i)
{
	mo_desc_free(&command_desc, l->queries[i].command);
	l->queries[i] = l->queries[--l->n_queries];
}

static void on_timer(void *arg)
{
	struct logs *l = arg;
	l->search_left = SEARCH_BYTES;
	for (size_t i = l->n_queries; i-- > 0;)
		if (try_answer(l, &l->queries[i]))
			remove_query(l, i);
	if (l->n_queries > 0)
		mo_timer_in(l->timer, l->search_left < PIECE_BYTES ? SEARCH_AGAIN_US : POLL_US);
}

int logs_new(struct manager *m, struct logs **ret)
{
	struct logs *l = mo_alloc(sizeof(*l));
	l->m = m;
	l->queries = mo_alloc_array(QUERIES_MAX, sizeof(*l->queries));
	int r = mo_timer_new(m->loop, on_timer, l, &l->timer);
	if (r < 0) {
		logs_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

struct logs *logs_free(struct logs *l)
{
	if (!l)
		return NULL;
	while (l->n_queries > 0)
		remove_query(l, 0);
	mo_timer_free(l->timer);
	free(l->queries);
	free(l);
	return NULL;
}

/* What stepd recorded of its ranks' environments: in the step's directory, once that is gone
 * beside the logs. */
static void answer_env(struct logs *l, const struct query *q)
{
	const struct command *c = q->command;
	_cleanup_(mo_freep) char *dir = path_step(l->m->config, c->job, c->attempt),
				 *path = mo_path(dir, "env.json");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *logs = path_logs(l->m->config, c->job, c->attempt),
				 *retained = mo_path(logs, "env.json");
	int r = mo_read_file(path, ENV_BYTES_MAX, &b);
	if (r == -ENOENT)
		r = mo_read_file(retained, ENV_BYTES_MAX, &b);
	_cleanup_(mo_freep) char *error =
		r == -ENOENT
			? mo_printf("%s has not started the ranks of attempt %lld, or forgot them",
				    l->m->config->node, (long long)c->attempt)
		: r < 0 ? mo_printf("%s on %s: %s", path, l->m->config->node, strerror(-r))
			: NULL;
	answer(l, q, error, r < 0 ? NULL : mo_buf_take(&b), false, true);
}

void logs_query(struct logs *l, const struct command *c)
{
	int64_t wait_ms = c->wait_ms == MO_NONE ? 0 : MO_MIN(MO_MAX(c->wait_ms, 0), WAIT_MAX_MS);
	struct query q = { .command = mo_desc_dup(&command_desc, c),
			   .offset = c->offset == MO_NONE ? 0 : c->offset,
			   .deadline_us = mo_clock_boot_us() + wait_ms * 1000,
			   .since_us = c->since_ms == MO_NONE
					       ? MO_NONE
					       : mo_clock_wall_us() - c->since_ms * 1000,
			   .searched_to = MO_NONE };
	if (c->what && !mo_streq(c->what, LOG_SINCE_WHAT)) {
		if (mo_streq(c->what, "env"))
			answer_env(l, &q);
		else
			answer(l, &q,
			       "this agent does not know what is asked: it is older than the "
			       "controller",
			       NULL, false, true);
		mo_desc_free(&command_desc, q.command);
		return;
	}
	if (l->n_queries == QUERIES_MAX) {
		answer(l, &q, "too many log readers wait on this node; try again", NULL, false,
		       false);
		mo_desc_free(&command_desc, q.command);
		return;
	}
	if (try_answer(l, &q)) {
		mo_desc_free(&command_desc, q.command);
		return;
	}
	l->queries[l->n_queries++] = q;
	mo_timer_in(l->timer, l->search_left < PIECE_BYTES ? SEARCH_AGAIN_US : POLL_US);
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

static bool has_step(const struct manager *m, int64_t job)
{
	for (size_t i = 0; i < m->n_steps; i++)
		if (m->steps[i]->job == job)
			return true;
	return false;
}

/* Logs of jobs that are not among the newest logs_kept go, unless a step of theirs is here. */
void logs_retain(struct logs *l)
{
	_cleanup_(mo_freep) char *path = mo_path(l->m->config->state_dir, "logs");
	_cleanup_(mo_freep) int64_t *jobs = NULL;
	size_t n = 0;
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, path, 0);
	for (const char *name; (name = mo_dir_next(d));) {
		int64_t job;
		if (name[0] == 'j' && mo_parse_i64(name + 1, 1, INT64_MAX, &job) == 0)
			mo_ints_add(&jobs, &n, job);
	}
	if (n > 1)
		qsort(jobs, n, sizeof(*jobs), newest_first);
	for (size_t i = (size_t)l->m->config->logs_kept; i < n; i++) {
		_cleanup_(mo_freep) char *dir = mo_path(path, "j%lld", (long long)jobs[i]);
		int r = has_step(l->m, jobs[i]) ? 0 : mo_rm_rf(dir);
		if (r < 0)
			mo_log(MO_WARNING, NULL, NULL, "%s cannot be removed: %s", dir,
			       strerror(-r));
	}
}
