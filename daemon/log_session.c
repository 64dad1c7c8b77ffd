/* One question per rank is open at a time, few while ranks catch up, and what comes while the
 * client has much unread is dropped and asked for again later, so memory is bounded. Without
 * follow, ranks come one after the other; with it, as they write. Text: whole lines, each led by
 * "[rank] " when there are several ranks. Records (one JSON object per line) say after each piece
 * where the rank's position is, from which a later request goes on (from=). The status line is held
 * back until the first answer, so that an error can still be a problem document. */
#include "daemon/log_session.h"

#include <string.h>
#include <uthash.h>

#include "daemon/agent_link.h"
#include "lib/loop/loop.h"
#include "lib/wire/encode.h"

#define BACKLOG_MAX (256 * 1024)
#define FOLLOW_WAIT_MS 5000
#define PARTIAL_MAX (64 * 1024) /* a line longer than this is written in pieces */
#define CATCH_UP 4              /* ranks asked at once for what is there already */
/* a rank that has not started, or an agent with too many readers */
#define LATER_US 500000

struct log_session;
struct log_rank {
	struct log_session *session;
	int64_t rank, offset;
	int64_t since_us; /* core time; MO_NONE: the place is found, or any will do */
	char *node;
	int64_t query; /* 0 none */
	/* waiting: for its turn, or for the client to read; later: for the timer; soon: not
	 * asked yet whether there is more */
	bool done, waiting, later, soon;
	struct mo_buf partial;
};
struct log_session {
	uint64_t id; /* request */
	struct manager *manager;
	int64_t job, attempt, lines; /* lines MO_NONE: everything */
	bool follow, records, started;
	struct mo_timer *timer;
	struct log_rank *ranks;
	size_t n_ranks;
	size_t current; /* without follow: the rank whose turn it is */
	/* with follow: the first to check for one that waits */
	size_t next;
	UT_hash_handle hh;
};
struct queries {
	struct log_session *all;
};

static void log_session_free(struct log_session *s)
{
	HASH_DEL(s->manager->queries->all, s);
	for (size_t i = 0; i < s->n_ranks; i++) {
		if (s->ranks[i].query)
			link_query_cancel(s->manager, s->ranks[i].query);
		free(s->ranks[i].node);
		mo_buf_done(&s->ranks[i].partial);
	}
	mo_timer_free(s->timer);
	free(s->ranks);
	free(s);
}

void queries_new(struct manager *m)
{
	m->queries = mo_alloc(sizeof(*m->queries));
}

struct queries *queries_free(struct queries *q)
{
	struct log_session *s, *tmp;

	if (!q)
		return NULL;
	HASH_ITER(hh, q->all, s, tmp)
		log_session_free(s);
	free(q);
	return NULL;
}

static void on_gone(void *arg, uint64_t id)
{
	struct log_session *s = NULL;

	HASH_FIND(hh, ((struct manager *)arg)->queries->all, &id, sizeof(id), s);
	if (s)
		log_session_free(s);
}

static void ask(struct log_rank *k);

/* Asks up to n ranks that wait. Without follow asking one may end the session. */
static void wake(struct log_session *s, size_t n)
{
	size_t n_ranks = s->n_ranks, first = s->next;

	if (!s->follow) {
		if (s->ranks[s->current].waiting)
			ask(&s->ranks[s->current]);
		return;
	}
	for (size_t i = 0; i < n_ranks && n > 0; i++) {
		struct log_rank *k = &s->ranks[(first + i) % n_ranks];
		if (!k->waiting)
			continue;
		s->next = (first + i + 1) % n_ranks;
		k->soon = true;
		ask(k);
		n--;
	}
}

static void on_drained(void *arg, uint64_t id)
{
	struct log_session *s = NULL;

	HASH_FIND(hh, ((struct manager *)arg)->queries->all, &id, sizeof(id), s);
	if (s)
		wake(s, CATCH_UP);
}

static void on_later(void *arg)
{
	struct log_session *s = arg;

	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].later) {
			s->ranks[i].later = false;
			ask(&s->ranks[i]);
		}
}

static struct http_request *start(struct log_session *s)
{
	struct http_request *r = http_find(s->manager->http, s->id);

	if (r && !s->started) {
		s->started = true;
		http_stream_start(r, s->records ? "application/x-ndjson"
						: "text/plain; charset=utf-8");
		http_stream_on_drained(r, on_drained, s->manager);
	}
	return r;
}

/* Whole lines of the rank with its number in front; the rest stays in partial. */
static void write_lines(struct http_request *r, struct log_rank *k, bool all)
{
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };
	size_t at = 0;

	while (at < k->partial.len) {
		const char *begin = k->partial.data + at,
			   *end = memchr(begin, '\n', k->partial.len - at);
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
	struct log_session *s = k->session;
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

static void write_record(struct log_rank *k, const char *text, int64_t lost, const char *error,
			 bool end)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct http_request *r = start(k->session);

	mo_buf_printf(&b, "{\"attempt\":%lld,\"rank\":%lld,\"offset\":%lld",
		      (long long)k->session->attempt, (long long)k->rank, (long long)k->offset);
	if (lost > 0)
		mo_buf_printf(&b, ",\"lost\":%lld", (long long)lost);
	if (error) {
		mo_buf_str(&b, ",\"error\":");
		wire_string(error, &b);
	}
	mo_buf_str(&b, ",\"text\":");
	wire_string(text, &b);
	mo_buf_printf(&b, ",\"end\":%s}\n", end ? "true" : "false");
	if (r)
		http_stream_write(r, b.data, b.len);
}

/* What an agent answered. The text is never shorter than the bytes it stands for, so a greater
 * distance between the positions means that the log was rotated meanwhile. */
static void write_answer(struct log_rank *k, const struct query_answer *a, bool end)
{
	const char *text = a->text ? a->text : "";
	bool from_time = k->since_us != MO_NONE;
	int64_t before = from_time ? -1 : k->offset,
		at = a->offset != MO_NONE ? a->offset : MO_MAX(before, 0);
	int64_t lost = before < 0 ? 0 : MO_MAX(at - before - (int64_t)strlen(text), 0);

	k->offset = at;
	k->since_us = MO_NONE;
	if (k->session->records) {
		if (*text || end || before != at)
			write_record(k, text, lost, NULL, end);
		return;
	}
	if (lost > 0) {
		_cleanup_(mo_freep) char *line = mo_printf("moectl: logs of rank %lld: %lld bytes "
							   "are gone, the log was rotated\n",
							   (long long)k->rank, (long long)lost);
		write_text(k, line);
	}
	write_text(k, text);
}

static bool all_done(const struct log_session *s)
{
	for (size_t i = 0; i < s->n_ranks; i++)
		if (!s->ranks[i].done)
			return false;
	return true;
}

/* The rank has nothing more to say; ends the session after the last one. */
static void rank_done(struct log_rank *k)
{
	struct log_session *s = k->session;
	struct http_request *r = start(s);

	k->done = true;
	if (r && k->partial.len)
		write_lines(r, k, true);
	if (!s->follow && ++s->current < s->n_ranks) {
		ask(&s->ranks[s->current]);
		return;
	}
	if (!all_done(s)) {
		wake(s, 1);
		return;
	}
	log_session_free(s);
	if (r)
		http_stream_end(r);
}

static void rank_failed(struct log_rank *k, const char *why)
{
	struct log_session *s = k->session;
	struct http_request *r = http_find(s->manager->http, s->id);

	if (r && !s->started && s->n_ranks == 1 && !(s->follow && s->records)) {
		http_problem(r, 503, "logs of rank %lld: %s", (long long)k->rank, why);
		log_session_free(s);
		return;
	}
	_cleanup_(mo_freep) char *line =
		mo_printf("moectl: logs of rank %lld: %s\n", (long long)k->rank, why);
	if (s->records)
		write_record(k, "", 0, why, true);
	else
		write_text(k, line);
	rank_done(k);
}

static bool job_over(const struct log_session *s)
{
	const struct job *j = job_find(manager_state(s->manager), s->job);

	return !j || job_state_final(j->state) || j->attempt != s->attempt;
}

/* As far as the controller knows: it has not heard of the rank's exit, and no proof that its
 * step is gone. Then an agent's word that nothing more comes is not the end: it may not know the
 * step yet, or know of an exit whose note is on its way. */
static bool rank_lives(const struct log_rank *k)
{
	const struct log_session *s = k->session;
	const struct job *j = job_find(manager_state(s->manager), s->job);

	for (size_t i = 0; j && i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		if (st->attempt == s->attempt && k->rank >= st->first_rank &&
		    k->rank < st->first_rank + st->n_ranks &&
		    (st->gone || st->hung || st->forgotten))
			return false;
	}
	for (size_t i = 0; j && i < j->run.n_ranks; i++)
		if (j->run.ranks[i].rank == k->rank)
			return j->run.ranks[i].state != RANK_EXITED && !job_over(s);
	return false;
}

static bool node_answers(const struct log_rank *k)
{
	const struct node *n = node_find(manager_state(k->session->manager), k->node);

	return n && n->state != NODE_DOWN;
}

static void ask_later(struct log_rank *k)
{
	k->later = true;
	mo_timer_in(k->session->timer, LATER_US);
}

/* A follower's question without an answer that counts: true when it is asked again. */
static bool asked_again(struct log_rank *k, const struct query_answer *a)
{
	struct log_session *s = k->session;

	if (!s->follow || (!a && job_over(s) && !node_answers(k)) ||
	    (a && a->end && (!rank_lives(k) || (a->error && k->since_us != MO_NONE))))
		return false; /* of a time that nobody noted nothing more will be known */
	if (a) {
		ask_later(k);
	} else {
		/* the agent restarts, or the node is silent for a while */
		ask(k);
	}
	wake(s, 1);
	return true;
}

static void on_answer(void *arg, const struct query_answer *a, const char *why)
{
	struct log_rank *k = arg;
	struct log_session *s = k->session;
	const struct http_request *r = http_find(s->manager->http, s->id);

	k->query = 0;
	if (!a || a->error) {
		if (!asked_again(k, a))
			rank_failed(k, a ? a->error : why);
		return;
	}
	if (r && s->started && http_stream_backlog(r) > BACKLOG_MAX) {
		k->waiting = true;
		return;
	}
	/* a rank that writes all the time has no end without the latter */
	bool end = s->follow ? a->end && !rank_lives(k) : a->end || !a->more;
	write_answer(k, a, end);
	k->soon = a->more;
	if (end) {
		rank_done(k);
		return;
	}
	bool follow = s->follow;
	if (a->end)
		ask_later(k);
	else
		/* which ends a session that does not follow when the node is down by now */
		ask(k);
	if (follow)
		wake(s, 1);
}

static void ask(struct log_rank *k)
{
	struct log_session *s = k->session;
	struct http_request *r = http_find(s->manager->http, s->id);

	if (!r)
		return;
	k->waiting = s->started && http_stream_backlog(r) > BACKLOG_MAX;
	if (k->waiting)
		return;
	if (!s->follow && !node_answers(k)) {
		_cleanup_(mo_freep) char *why =
			mo_printf("node %s is down: they can be read when it is back", k->node);
		rank_failed(k, why);
		return;
	}
	int64_t wait_ms = s->follow && s->started && !k->soon ? FOLLOW_WAIT_MS : 0;
	const struct command c = {
		.job = s->job,
		.attempt = s->attempt,
		.rank = k->rank,
		.offset = k->offset,
		.lines = s->lines == MO_NONE ? 0 : s->lines,
		.wait_ms = wait_ms,
		.since_ms = k->since_us == MO_NONE
				    ? MO_NONE
				    : MO_MAX(0, manager_now(s->manager) - k->since_us) / 1000,
	};
	k->query = link_query(s->manager, k->node, &c, on_answer, k);
	k->soon = false;
}

void log_session_begin(struct manager *m, struct http_request *r, const struct log_wish *w)
{
	struct log_session *s = mo_alloc(sizeof(*s));

	s->id = http_id(r);
	s->manager = m;
	s->job = w->job;
	s->attempt = w->attempt;
	s->lines = w->lines;
	s->follow = w->follow;
	s->records = w->records;
	for (size_t i = 0; i < w->n_ranks; i++) {
		struct log_rank *k = MO_GROW(s->ranks, s->n_ranks);

		k->session = s;
		k->rank = w->ranks[i].rank;
		k->node = mo_strdup(w->ranks[i].node);
		k->offset = w->ranks[i].offset;
		k->since_us = w->ranks[i].since_us;
		k->waiting = true;
	}
	HASH_ADD(hh, m->queries->all, id, sizeof(s->id), s);
	if (mo_timer_new(m->loop, on_later, s, &s->timer) < 0)
		abort();
	http_on_gone(r, on_gone, m);
	http_hold(r);
	wake(s, CATCH_UP);
}
