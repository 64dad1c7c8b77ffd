/* See agent_questions.h. */
#include "daemon/agent_questions.h"

#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/loop/loop.h"

struct query {
	int64_t id;
	struct command command;
	int64_t deadline; /* boot us */
	/* once to each hello: the agent may be waiting for new lines; a lost one times out */
	bool sent;
	link_answer_fn fn;
	void *arg;
	bool owns_arg;             /* freed with the query */
	struct query *prev, *next; /* of its node */
	struct asked *asked;
	UT_hash_handle hh;
};
/* A node that was asked once. */
struct asked {
	char *node;
	struct query *queries;
	UT_hash_handle hh;
};
struct questions {
	struct asked *nodes;   /* by name */
	struct query *queries; /* by id */
	int64_t n_asked;
	struct mo_timer *timer;
};

static struct asked *asked_get(struct questions *l, const char *node)
{
	struct asked *a = NULL;

	HASH_FIND_STR(l->nodes, node, a);
	if (!a) {
		a = mo_alloc(sizeof(*a));
		a->node = mo_strdup(node);
		HASH_ADD_KEYPTR(hh, l->nodes, a->node, strlen(a->node), a);
	}
	return a;
}

static void query_free(struct questions *l, struct query *q)
{
	HASH_DEL(l->queries, q);
	DL_DELETE(q->asked->queries, q);
	mo_desc_done(&command_desc, &q->command);
	if (q->owns_arg)
		free(q->arg);
	free(q);
}

static void query_end(struct questions *l, struct query *q, const struct query_answer *answer,
		      const char *why)
{
	link_answer_fn fn = q->fn;
	void *arg = q->arg, *owned = q->owns_arg ? arg : NULL;

	q->owns_arg = false;
	query_free(l, q);
	fn(arg, answer, why);
	free(owned);
}

static void on_timeout(void *arg)
{
	struct questions *l = arg;
	struct query *q, *tmp;
	int64_t now = mo_clock_boot_us(), next = INT64_MAX;

	HASH_ITER(hh, l->queries, q, tmp) {
		if (q->deadline > now) {
			next = MO_MIN(next, q->deadline);
			continue;
		}
		_cleanup_(mo_freep) char *why =
			mo_printf("node %s did not answer in time", q->asked->node);
		query_end(l, q, NULL, why);
		/* fn may have cancelled the one that comes next: start over */
		mo_timer_in(l->timer, 0);
		return;
	}
	mo_timer_at(l->timer, next);
}

struct questions *questions_new(sd_event *loop)
{
	struct questions *l = mo_alloc(sizeof(*l));

	if (mo_timer_new(loop, on_timeout, l, &l->timer) < 0)
		abort();
	return l;
}

struct questions *questions_free(struct questions *l)
{
	struct query *q, *q_tmp;
	struct asked *a, *tmp;

	if (!l)
		return NULL;
	HASH_ITER(hh, l->queries, q, q_tmp)
		query_free(l, q);
	HASH_ITER(hh, l->nodes, a, tmp) {
		HASH_DEL(l->nodes, a);
		free(a->node);
		free(a);
	}
	mo_timer_free(l->timer);
	free(l);
	return NULL;
}

struct command *question_new(struct questions *l, int64_t epoch, const char *node,
			     int64_t timeout_us, link_answer_fn fn, void *arg, bool owns_arg)
{
	struct query *q = mo_alloc(sizeof(*q));
	struct command *c = &q->command;

	mo_desc_init(&command_desc, c);
	/* Never a number of an earlier run: agents ignore a question that comes twice, and may
	 * still answer one of before. */
	q->id = (epoch & INT32_MAX) << 32 | (++l->n_asked & UINT32_MAX);
	q->asked = asked_get(l, node);
	q->fn = fn;
	q->arg = arg;
	q->owns_arg = owns_arg;
	q->deadline = mo_clock_boot_us() + timeout_us;
	c->kind = CMD_QUERY;
	c->query = q->id;
	c->node = mo_strdup(node);
	DL_APPEND(q->asked->queries, q);
	HASH_ADD(hh, l->queries, id, sizeof(q->id), q);
	mo_timer_in(l->timer, 0);
	return c;
}

void question_cancel(struct questions *l, int64_t id)
{
	struct query *q = NULL;

	HASH_FIND(hh, l->queries, &id, sizeof(id), q);
	if (q)
		query_free(l, q);
}

bool question_answered(struct questions *l, const struct query_answer *answer)
{
	struct query *q = NULL;

	HASH_FIND(hh, l->queries, &answer->query, sizeof(answer->query), q);
	if (!q || strcmp(q->asked->node, answer->node) != 0)
		return false;
	query_end(l, q, answer, NULL);
	return true;
}

bool questions_wait(const struct questions *l, const char *node)
{
	const struct query *q;
	struct asked *a = NULL;

	HASH_FIND_STR(l->nodes, node, a);
	if (a)
		DL_FOREACH(a->queries, q)
			if (!q->sent)
				return true;
	return false;
}

void questions_send(struct questions *l, const char *node, int64_t epoch, struct sync_reply *reply)
{
	struct asked *a = NULL;
	struct query *q;

	HASH_FIND_STR(l->nodes, node, a);
	if (!a)
		return;
	DL_FOREACH(a->queries, q) {
		if (q->sent)
			continue;
		struct command *c = MO_ADD(reply, commands, &command_desc);
		mo_desc_copy(&command_desc, c, &q->command);
		c->epoch = epoch;
		q->sent = true;
	}
}

void questions_again(struct questions *l, const char *node)
{
	struct asked *a = NULL;
	struct query *q;

	HASH_FIND_STR(l->nodes, node, a);
	if (a)
		DL_FOREACH(a->queries, q)
			q->sent = false;
}
