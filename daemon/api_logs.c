/* GET /v1/jobs/{id}/logs: what is asked, and whether there is such a rank and attempt; the answer
 * is log_session.c's. */
#include "daemon/api_logs.h"

#include <string.h>
#include "daemon/api.h"
#include "daemon/log_session.h"
#include "daemon/quota.h"
#include "daemon/visible.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define RANKS_MAX 256
#define LINES_MAX 1000000

const char *api_node_of(const struct job *j, int64_t attempt, int64_t rank)
{
	for (size_t i = 0; i < j->n_steps; i++) {
		const struct step *s = &j->steps[i];
		if (s->attempt == attempt && rank >= s->first_rank &&
		    rank < s->first_rank + s->n_ranks)
			return s->node;
	}
	for (size_t i = 0; i < j->run.n_ranks; i++)
		if (j->run.ranks[i].rank == rank)
			return j->run.ranks[i].node;
	return NULL;
}

/* rank=3 or ranks=0-7,12; neither: all. False after 400 was sent. */
static bool read_ranks(struct http_request *r, const struct job *j, struct mo_idset *ret)
{
	const char *text = http_query(r, "ranks");
	int64_t rank;

	if (!api_int(r, "rank", 0, MO_RANKS_MAX - 1, MO_NONE, &rank))
		return false;
	if (text && (rank != MO_NONE || !*text || mo_idset_parse(text, ret) < 0)) {
		http_problem(r, 400,
			     "ranks=%.40s: must be numbers of ranks such as 0-7,12, without rank=",
			     text);
		return false;
	}
	if (rank != MO_NONE)
		mo_idset_add(ret, (size_t)rank);
	for (size_t i = 0; !text && rank == MO_NONE && i < j->run.n_ranks; i++)
		mo_idset_add(ret, i);
	return true;
}

/* The first one that the job does not have; -1: it has all. */
static int64_t no_rank(const struct job *j, const struct mo_idset *ranks)
{
	return mo_idset_next(ranks, (int64_t)j->run.n_ranks);
}

static bool check(struct http_request *r, const struct job *j, const struct mo_idset *ranks,
		  int64_t attempt)
{
	if (j->run.n_ranks == 0)
		http_problem(r, 409, "job j-%lld has not started yet: there are no logs",
			     (long long)j->id);
	else if (attempt > j->attempt)
		http_problem(r, 404, "job j-%lld has no attempt %lld: the newest is %lld",
			     (long long)j->id, (long long)attempt, (long long)j->attempt);
	else if (no_rank(j, ranks) >= 0 && j->run.n_ranks == 1)
		http_problem(r, 404, "job j-%lld has no rank %lld: its only one is 0",
			     (long long)j->id, (long long)no_rank(j, ranks));
	else if (no_rank(j, ranks) >= 0)
		http_problem(r, 404, "job j-%lld has no rank %lld: ranks are 0 to %zu",
			     (long long)j->id, (long long)no_rank(j, ranks), j->run.n_ranks - 1);
	else if (mo_idset_count(ranks) > RANKS_MAX)
		http_problem(r, 422,
			     "%zu ranks of job j-%lld are too many for one stream: choose at most "
			     "%d with ranks=",
			     mo_idset_count(ranks), (long long)j->id, RANKS_MAX);
	else
		return true;
	return false;
}

/* from=: positions of the ranks in their order, "120,,88"; nothing between the commas: as
 * without. False after 400 was sent. */
static bool read_positions(struct http_request *r, struct log_wish *w)
{
	const char *at = http_query(r, "from");
	size_t n = 0;

	if (!at)
		return true;
	for (; n < w->n_ranks; n++) {
		_cleanup_(mo_freep) char *word = mo_strndup(at, strcspn(at, ","));
		w->ranks[n].since_us = *word ? MO_NONE : w->ranks[n].since_us;
		if (*word && mo_parse_i64(word, 0, INT64_MAX, &w->ranks[n].offset) < 0)
			break;
		at += strlen(word);
		if (n + 1 < w->n_ranks && *at++ != ',')
			break;
	}
	if (*at || n < w->n_ranks)
		http_problem(r, 400,
			     "from= is not the positions of %zu ranks: give one number of bytes "
			     "for each, in the order of the ranks, with commas",
			     w->n_ranks);
	else if (!http_query(r, "attempt"))
		http_problem(r, 400,
			     "from= counts the bytes of one attempt: say which one with attempt=");
	else
		return true;
	return false;
}

/* since=10m, back from now, or a time. False after 400 was sent. */
static bool read_since(struct manager *m, struct http_request *r, int64_t *ret)
{
	const char *since = http_query(r, "since");
	int64_t us;

	*ret = MO_NONE;
	if (!since)
		return true;
	if (mo_parse_duration_us(since, &us) == 0) {
		*ret = manager_now(m) - us;
		return true;
	}
	if (mo_time_parse(since, ret) < 0)
		http_problem(r, 400,
			     "since=%.40s: must be how long ago, such as 10m or 2h, or a time such "
			     "as 2026-11-21T08:30:00Z",
			     since);
	else if (*ret > manager_now(m))
		http_problem(r, 400, "since=%.40s: is in the future, by the controller's clock",
			     since);
	else
		return true;
	return false;
}

void api_job_logs(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	_cleanup_(mo_idset_done) struct mo_idset ranks = { 0 };
	int64_t attempt, lines, since_us;

	if (!j || !visible_to(m, r, j, "logs") ||
	    !api_int(r, "attempt", 1, INT64_MAX, j->attempt, &attempt) ||
	    !api_int(r, "lines", 0, LINES_MAX, MO_NONE, &lines) || !read_since(m, r, &since_us) ||
	    !read_ranks(r, j, &ranks) || !check(r, j, &ranks, attempt) || !quota_hold(m, r))
		return;
	struct log_wish w = { .job = j->id,
			      .attempt = attempt,
			      .lines = lines,
			      .follow = api_flag(r, "follow"),
			      .records = api_flag(r, "records") };

	for (int64_t i = mo_idset_next(&ranks, 0); i >= 0; i = mo_idset_next(&ranks, i + 1))
		*MO_GROW(w.ranks, w.n_ranks) =
			(struct log_place){ .rank = i,
					    .offset = lines == MO_NONE ? 0 : -1,
					    .since_us = since_us,
					    .node = api_node_of(j, attempt, i) };
	if (read_positions(r, &w))
		log_session_begin(m, r, &w);
	free(w.ranks);
}
