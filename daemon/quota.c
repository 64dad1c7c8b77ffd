/* A user may make QUOTA_BURST changes at once and then so many a second; each costs a little of the time that is kept here, and an account that is even again is forgotten. */
#include "daemon/quota.h"
#include <string.h>
#include <uthash.h>
#include "daemon/api.h"
#include "lib/base/clock.h"
#include "lib/model/limits.h"

#define CHANGE_US (1000000 / MO_CHANGES_PER_S)
#define FORGET_EVERY_US (60 * 1000000LL)

struct account { char *user; int64_t spent_until; UT_hash_handle hh; };   /* boot us */
struct quotas { struct account *accounts; int64_t forgotten_at; };

void quotas_new(struct manager *m)
{
	m->quotas = mo_alloc(sizeof(*m->quotas));
}

static void forget(struct quotas *q, int64_t before)
{
	struct account *a, *tmp;

	HASH_ITER(hh, q->accounts, a, tmp) {
		if (a->spent_until > before)
			continue;
		HASH_DEL(q->accounts, a);
		free(a->user);
		free(a);
	}
}

struct quotas *quotas_free(struct quotas *q)
{
	if (!q)
		return NULL;
	forget(q, INT64_MAX);
	free(q);
	return NULL;
}

static bool may_change(struct quotas *q, const char *user, int64_t now)
{
	struct account *a = NULL;

	if (now - q->forgotten_at > FORGET_EVERY_US) {
		forget(q, now);
		q->forgotten_at = now;
	}
	HASH_FIND_STR(q->accounts, user, a);
	if (!a) {
		a = mo_alloc(sizeof(*a));
		a->user = mo_strdup(user);
		HASH_ADD_KEYPTR(hh, q->accounts, a->user, strlen(a->user), a);
	}
	a->spent_until = MO_MAX(a->spent_until, now);
	if (a->spent_until - now >= (int64_t)MO_CHANGES_BURST * CHANGE_US)
		return false;
	a->spent_until += CHANGE_US;
	return true;
}

bool quota_admit(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct http_caller *c = http_caller(r);
	bool follows = api_flag(r, "follow");
	struct http_stats stats;

	if (c->role != ROLE_VIEWER && c->role != ROLE_USER)
		return true;
	http_server_stats(m->http, &stats);
	if (follows && stats.streams >= MO_STREAM_CLIENTS_MAX)
		http_problem(r, 429, "%d streams are open, the most there may be: try again in a moment", MO_STREAM_CLIENTS_MAX);
	else if (follows && http_server_streams_of(m->http, c->user) >= MO_STREAMS_PER_USER)
		http_problem(r, 429, "%s has %d streams open, the most for one user: close some", c->user, MO_STREAMS_PER_USER);
	else if (strcmp(http_method(r), "GET") != 0 && !may_change(m->quotas, c->user, mo_clock_boot_us()))
		http_problem(r, 429, "%s asked for more than %d changes a second: wait a little between them", c->user, MO_CHANGES_PER_S);
	else
		return true;
	return false;
}
