/* Logs: a session per request asks the agents of its ranks (agent_link.c) and writes what comes to a text/plain stream. One question per rank is open at a time, and none
 * while the client has much unread, so memory is bounded. Without follow, ranks come one after the other; with it, as they write, by whole lines. Several ranks: each line
 * begins with "[rank] ". The status line is held back until the first answer, so that an error can still be a problem document. */
#include <string.h>
#include <uthash.h>
#include "daemon/agent_link.h"
#include "daemon/api.h"
#include "daemon/logs.h"

#define BACKLOG_MAX (256 * 1024)
#define FOLLOW_WAIT_MS 5000
#define RANKS_MAX 256
#define LINES_MAX 1000000
#define PARTIAL_MAX (64 * 1024)          /* a line longer than this is written in pieces */

struct session;
struct log_rank {
	struct session *session;
	int64_t rank, offset;
	char *node;
	int64_t query;                       /* 0 none */
	bool done, waiting;                  /* waiting: for the client to read */
	struct mo_buf partial;
};
struct session {
	uint64_t id;                         /* request */
	struct manager *manager;
	int64_t job, attempt, lines;         /* lines MO_NONE: everything */
	bool follow, started;
	struct log_rank *ranks; size_t n_ranks;
	size_t current;                      /* without follow: the rank whose turn it is */
	UT_hash_handle hh;
};
struct queries { struct session *all; };

static void session_free(struct session *s)
{
	HASH_DEL(s->manager->queries->all, s);
	for (size_t i = 0; i < s->n_ranks; i++) {
		if (s->ranks[i].query)
			link_query_cancel(s->manager, s->ranks[i].query);
		free(s->ranks[i].node);
		mo_buf_done(&s->ranks[i].partial);
	}
	free(s->ranks);
	free(s);
}

void queries_new(struct manager *m)
{
	m->queries = mo_alloc(sizeof(*m->queries));
}

struct queries *queries_free(struct queries *q)
{
	struct session *s, *tmp;

	if (!q)
		return NULL;
	HASH_ITER(hh, q->all, s, tmp)
		session_free(s);
	free(q);
	return NULL;
}

static void on_gone(void *arg, uint64_t id)
{
	struct session *s = NULL;

	HASH_FIND(hh, ((struct manager *)arg)->queries->all, &id, sizeof(id), s);
	if (s)
		session_free(s);
}

static void ask(struct log_rank *k);

static void on_drained(void *arg, uint64_t id)
{
	struct session *s = NULL;

	HASH_FIND(hh, ((struct manager *)arg)->queries->all, &id, sizeof(id), s);
	if (!s)
		return;
	/* Without follow one rank at a time may wait, and asking it may end the session. */
	size_t first = s->follow ? 0 : s->current, end = s->follow ? s->n_ranks : first + 1;
	for (size_t i = first; i < end; i++)
		if (s->ranks[i].waiting) {
			s->ranks[i].waiting = false;
			ask(&s->ranks[i]);
		}
}

static struct http_request *start(struct session *s)
{
	struct http_request *r = http_find(s->manager->http, s->id);

	if (r && !s->started) {
		s->started = true;
		http_stream_start(r, "text/plain; charset=utf-8");
		http_stream_on_drained(r, on_drained, s->manager);
	}
	return r;
}

/* Whole lines of the rank with its number in front; the rest stays in partial. */
static void write_lines(struct http_request *r, struct log_rank *k, bool all)
{
	_cleanup_(mo_buf_done) struct mo_buf out = {0};
	size_t at = 0;

	while (at < k->partial.len) {
		const char *begin = k->partial.data + at, *end = memchr(begin, '\n', k->partial.len - at);
		if (!end && !all && k->partial.len - at < PARTIAL_MAX)
			break;
		size_t n = end ? (size_t)(end - begin) : k->partial.len - at;
		mo_buf_printf(&out, "[%lld] ", (long long)k->rank);
		mo_buf_add(&out, begin, n);
		mo_buf_str(&out, "\n");
		at += n + (end != NULL);
	}
	mo_buf_consume(&k->partial, at);
	if (out.len)
		http_stream_write(r, out.data, out.len);
}

static void write_text(struct log_rank *k, const char *text)
{
	struct session *s = k->session;
	struct http_request *r = start(s);

	if (!r || !*text)
		return;
	if (s->n_ranks == 1) {
		http_stream_write(r, text, strlen(text));
		return;
	}
	mo_buf_str(&k->partial, text);
	write_lines(r, k, false);
}

static bool all_done(const struct session *s)
{
	for (size_t i = 0; i < s->n_ranks; i++)
		if (!s->ranks[i].done)
			return false;
	return true;
}

/* The rank has nothing more to say; ends the session after the last one. */
static void rank_done(struct log_rank *k)
{
	struct session *s = k->session;
	struct http_request *r = start(s);

	k->done = true;
	if (r && k->partial.len)
		write_lines(r, k, true);
	if (!s->follow && ++s->current < s->n_ranks) {
		ask(&s->ranks[s->current]);
		return;
	}
	if (!all_done(s))
		return;
	session_free(s);
	if (r)
		http_stream_end(r);
}

static void rank_failed(struct log_rank *k, const char *why)
{
	struct session *s = k->session;
	struct http_request *r = http_find(s->manager->http, s->id);

	if (r && !s->started && s->n_ranks == 1) {
		http_problem(r, 503, "logs of rank %lld: %s", (long long)k->rank, why);
		session_free(s);
		return;
	}
	_cleanup_(mo_freep) char *line = mo_printf("moectl: logs of rank %lld: %s\n", (long long)k->rank, why);
	write_text(k, line);
	rank_done(k);
}

static bool job_over(const struct session *s)
{
	const struct job *j = job_find(manager_state(s->manager), s->job);

	return !j || job_state_final(j->state) || j->attempt != s->attempt;
}

static void on_answer(void *arg, const struct query_answer *a, const char *why)
{
	struct log_rank *k = arg;
	struct session *s = k->session;

	k->query = 0;
	if (!a && s->follow && s->started && !job_over(s)) {
		ask(k);                          /* the agent restarts, or the node is silent for a while */
		return;
	}
	if (!a || a->error) {
		rank_failed(k, a ? a->error : why);
		return;
	}
	k->offset = a->offset;
	write_text(k, a->text ? a->text : "");
	if (a->end || (!s->follow && !a->more)) /* a rank that writes all the time has no end without this */
		rank_done(k);
	else
		ask(k);
}

static void ask(struct log_rank *k)
{
	struct session *s = k->session;
	struct http_request *r = http_find(s->manager->http, s->id);
	const struct node *n = node_find(manager_state(s->manager), k->node);

	if (!r)
		return;
	if (s->started && http_stream_backlog(r) > BACKLOG_MAX) {
		k->waiting = true;
		return;
	}
	if (!s->follow && (!n || n->state == NODE_DOWN)) {
		_cleanup_(mo_freep) char *why = mo_printf("node %s is down: they can be read when it is back", k->node);
		rank_failed(k, why);
		return;
	}
	k->query = link_query(s->manager, k->node, s->job, s->attempt, k->rank, k->offset, s->lines == MO_NONE ? 0 : s->lines, s->follow && s->started ? FOLLOW_WAIT_MS : 0, on_answer, k);
}

/* Where the rank ran in that attempt: steps are kept until the agent forgot them, else it is most likely where it runs now. */
static const char *node_of(const struct job *j, int64_t attempt, int64_t rank)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *s = &j->steps[i];
		if (s->attempt == attempt && rank >= s->first_rank && rank < s->first_rank + s->n_ranks)
			return s->node;
	}
	for (size_t i = 0; i < j->n_ranks; i++)
		if (j->ranks[i].rank == rank)
			return j->ranks[i].node;
	return NULL;
}

static void add_rank(struct session *s, const struct job *j, int64_t rank)
{
	struct log_rank *k = MO_GROW(s->ranks, s->n_ranks);

	k->session = s;
	k->rank = rank;
	k->node = mo_strdup(node_of(j, s->attempt, rank));
	k->offset = s->lines == MO_NONE ? 0 : -1;
}

static bool check(struct http_request *r, const struct job *j, int64_t rank, int64_t attempt)
{
	if (j->n_ranks == 0)
		http_problem(r, 409, "job j-%lld has not started yet: there are no logs", (long long)j->id);
	else if (attempt > j->attempt)
		http_problem(r, 404, "job j-%lld has no attempt %lld: the newest is %lld", (long long)j->id, (long long)attempt, (long long)j->attempt);
	else if (rank != MO_NONE && rank >= (int64_t)j->n_ranks)
		http_problem(r, 404, "job j-%lld has no rank %lld: ranks are 0 to %zu", (long long)j->id, (long long)rank, j->n_ranks - 1);
	else if (rank == MO_NONE && j->n_ranks > RANKS_MAX)
		http_problem(r, 422, "job j-%lld has %zu ranks, too many for one stream: choose one with rank=", (long long)j->id, j->n_ranks);
	else
		return true;
	return false;
}

void api_job_logs(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	int64_t rank, attempt, lines;

	if (!j || !api_int(r, "rank", 0, INT64_MAX, MO_NONE, &rank) || !api_int(r, "attempt", 1, INT64_MAX, j->attempt, &attempt) ||
	    !api_int(r, "lines", 0, LINES_MAX, MO_NONE, &lines) || !check(r, j, rank, attempt))
		return;
	struct session *s = mo_alloc(sizeof(*s));
	s->id = http_id(r);
	s->manager = m;
	s->job = j->id;
	s->attempt = attempt;
	s->lines = lines;
	s->follow = api_flag(r, "follow");
	for (int64_t i = 0; i < (int64_t)j->n_ranks; i++)
		if (rank == MO_NONE || i == rank)
			add_rank(s, j, i);
	HASH_ADD(hh, m->queries->all, id, sizeof(s->id), s);
	http_on_gone(r, on_gone, m);
	http_hold(r);
	for (size_t i = 0, n = s->follow ? s->n_ranks : 1; i < n; i++)
		ask(&s->ranks[i]);
}
