/* A user may make QUOTA_BURST changes at once and then so many a second; each costs a little of
 * the time that is kept here, and an account that is even again is forgotten. */
#include "daemon/quota.h"
#include <stdio.h>
#include <string.h>
#include <uthash.h>
#include "daemon/api.h"
#include "daemon/auth.h"
#include "daemon/input.h"
#include "lib/base/clock.h"
#include "lib/model/limits.h"

#define CHANGE_US (1000000 / MO_CHANGES_PER_S)
#define FORGET_EVERY_US (60 * 1000000LL)

/* A node beats once a second, in about 0.1 ms; the sync of 2,000 notes, as it comes after an
 * outage, costs 20 ms. */
#define NODE_SHARE 8                  /* a node may have one so much of the time, */
#define NODE_BURST_US (5 * 1000000LL) /* and that much at once */
/* what a message costs beside the time that it was measured to take: answer, records */
#define MESSAGE_US 1000
/* more is not its own: a whole queue that was answered in its turn */
#define MESSAGE_MAX_US 200000
#define NODE_REPORTED_EVERY_US (300 * 1000000LL)

/* boot us */
struct account {
	char *user;
	int64_t spent_until, reported_at, n_refused;
	UT_hash_handle hh;
};
struct quotas {
	struct account *accounts, *nodes;
	int64_t forgotten_at;
};

void quotas_new(struct manager *m)
{
	m->quotas = mo_alloc(sizeof(*m->quotas));
}

static void forget(struct account **all, int64_t before)
{
	struct account *a, *tmp;

	HASH_ITER(hh, *all, a, tmp) {
		if (a->spent_until > before ||
		    (a->reported_at && before - a->reported_at < NODE_REPORTED_EVERY_US))
			continue;
		HASH_DEL(*all, a);
		free(a->user);
		free(a);
	}
}

static struct account *account_of(struct account **all, const char *user, int64_t now)
{
	struct account *a = NULL;

	HASH_FIND_STR(*all, user, a);
	if (!a) {
		a = mo_alloc(sizeof(*a));
		a->user = mo_strdup(user);
		HASH_ADD_KEYPTR(hh, *all, a->user, strlen(a->user), a);
	}
	a->spent_until = MO_MAX(a->spent_until, now);
	return a;
}

static void forget_some(struct quotas *q, int64_t now)
{
	if (now - q->forgotten_at < FORGET_EVERY_US)
		return;
	forget(&q->accounts, now);
	forget(&q->nodes, now);
	q->forgotten_at = now;
}

struct quotas *quotas_free(struct quotas *q)
{
	if (!q)
		return NULL;
	forget(&q->accounts, INT64_MAX);
	forget(&q->nodes, INT64_MAX);
	free(q);
	return NULL;
}

static bool may_change(struct quotas *q, const char *user, int64_t now)
{
	forget_some(q, now);

	struct account *a = account_of(&q->accounts, user, now);

	if (a->spent_until - now >= (int64_t)MO_CHANGES_BURST * CHANGE_US)
		return false;
	a->spent_until += CHANGE_US;
	return true;
}

/* Who pays for the message: the node of its token, or the join token. "" nobody. */
static void payer_of(struct manager *m, const char *token_id, char *ret, size_t size)
{
	struct agent_token t;

	*ret = 0;
	if (auth_agent(m, token_id, &t) && (t.node || t.join))
		snprintf(ret, size, "%s%s", t.join ? "join token " : "", t.join ? t.id : t.node);
}

/* Once in five minutes, with how many there were since. */
static void tell(struct manager *m, struct account *a, int64_t now)
{
	if (a->reported_at && now - a->reported_at < NODE_REPORTED_EVERY_US)
		return;
	struct input *in = input_new(IN_STORE, NULL);
	bool node = !strchr(a->user, ' ');

	in->core.store = mo_desc_new(&in_store_desc);
	in->core.store->event = mo_strdup(event_registry[EVENT_NODE_NOISY].type);
	in->core.store->node = node ? mo_strdup(a->user) : NULL;
	in->core.store->message =
		mo_printf("%s%s sends more than one %dth of what this controller can read: %lld "
			  "of its messages were answered to come later (429)",
			  node ? "node " : "", a->user, NODE_SHARE, (long long)a->n_refused);
	a->reported_at = now;
	a->n_refused = 0;
	input_push(m, in);
}

bool quota_admit_head(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	int64_t now = mo_clock_boot_us();
	char payer[80];

	if (http_caller(r)->role != ROLE_AGENT)
		return true;
	payer_of(m, http_caller(r)->token_id, payer, sizeof(payer));
	if (!*payer)
		return true;
	forget_some(m->quotas, now);

	struct account *a = account_of(&m->quotas->nodes, payer, now);

	if (a->spent_until - now < NODE_BURST_US * NODE_SHARE)
		return true;
	a->n_refused++;
	tell(m, a, now);
	http_problem(r, 429,
		     "%s sends more than its share: one %dth of what this controller can read is "
		     "for one node; later",
		     payer, NODE_SHARE);
	return false;
}

static void charge(struct manager *m, const char *payer, int64_t cpu_us)
{
	if (payer && *payer)
		account_of(&m->quotas->nodes, payer, mo_clock_boot_us())->spent_until +=
			MO_MIN(cpu_us, MESSAGE_MAX_US) * NODE_SHARE;
}

void quota_begin(struct manager *m, const char *token_id, size_t bytes, struct quota_message *q)
{
	*q = (struct quota_message){ .began_ns = mo_clock_thread_ns(), .bytes = (int64_t)bytes };
	payer_of(m, token_id, q->payer, sizeof(q->payer));
}

void quota_end(struct manager *m, const struct quota_message *q)
{
	charge(m, q->payer,
	       (mo_clock_thread_ns() - q->began_ns) / 1000 + MESSAGE_US + q->bytes / 1024);
}

void quota_charge(struct manager *m, const char *node, int64_t cpu_us)
{
	charge(m, node, cpu_us);
}

static bool is_limited(const struct http_request *r)
{
	return http_caller(r)->role == ROLE_VIEWER || http_caller(r)->role == ROLE_USER;
}

bool quota_hold(struct manager *m, struct http_request *r)
{
	struct http_stats stats;

	if (!is_limited(r))
		return true;
	http_server_stats(m->http, &stats);
	if (stats.streams >= MO_STREAM_CLIENTS_MAX)
		http_problem(r, 429,
			     "%d streams are open, the most there may be: try again in a moment",
			     MO_STREAM_CLIENTS_MAX);
	else if (http_held_of_caller(r) >= MO_STREAMS_PER_USER)
		http_problem(r, 429,
			     "%s has %d requests open that stream or wait for a node, the most for "
			     "one user: close some",
			     http_caller(r)->user, MO_STREAMS_PER_USER);
	else
		return true;
	return false;
}

bool quota_admit(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const char *user = http_caller(r)->user;

	if (!is_limited(r) || strcmp(http_method(r), "GET") == 0 ||
	    may_change(m->quotas, user, mo_clock_boot_us()))
		return true;
	http_problem(r, 429,
		     "%s asked for more than %d changes a second: wait a little between them", user,
		     MO_CHANGES_PER_S);
	return false;
}
