/* Who may keep a connection. One that has shown no accepted credential is a stranger's: of
 * strangers each source may keep few, all together some, and each must show a whole request soon;
 * whoever has shown one counts no more, so twelve thousand agents behind one address are none of
 * them. Beyond a limit the oldest stranger goes, never the newest: who comes to say something has
 * said it long before he is the oldest, however fast others connect. A source is an IPv4 address,
 * an IPv6 /64, or the user of a UNIX peer. Of those who have shown one, a user or viewer may have
 * user_connections of any address and token, the agent of a node node_connections, and all users
 * and viewers of a listener one in USERS_PART: the rest is for agents and operators. Wrong
 * credentials: a source may send WRONG_BURST at once and one more every WRONG_EVERY_US; the next
 * ones get 429 on a connection that is closed. Right ones are never refused for what a neighbour
 * tried. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <utlist.h>
#include "lib/base/clock.h"
#include "lib/base/assert.h"
#include "lib/http/guard.h"

#define FIRST_US (10 * 1000000LL) /* patience with a stranger: handshake, head and body */
/* Not even too many strangers are cut earlier: a thousand agents may come at once after a
 * restart. */
#define GRACE_US (2 * 1000000LL)
#define SOURCE_PART 32 /* a source may keep one in so many connections with strangers */
#define SOURCE_LEAST 8
#define RESERVE_PART 4 /* and strangers together never this part */
#define SPARE_PART 16  /* so much is kept free as long as there are strangers to be sent away */
#define USERS_PART 2
#define FILES_KEPT 256 /* descriptors for anything but connections */
#define WRONG_BURST 10
#define WRONG_EVERY_US 200000
#define TELL_EVERY_US (60 * 1000000LL) /* of one source */
#define TELL_MOST 20                   /* of all, in that time */
#define SOURCES_MAX 65536

static int64_t now_us(void)
{
	return mo_clock_mono_ns() / 1000;
}

static void name_source(const struct connection *c, char ret[static SOURCE_NAME])
{
	struct ucred cred = { 0 };
	socklen_t n = sizeof(cred);
	struct in6_addr six;

	if (c->listener->local) {
		getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &n);
		snprintf(ret, SOURCE_NAME, "uid %u", cred.uid);
	} else if (inet_pton(AF_INET6, c->address, &six) == 1) {
		memset(six.s6_addr + 8, 0, 8);
		inet_ntop(AF_INET6, &six, ret, SOURCE_NAME);
	} else {
		snprintf(ret, SOURCE_NAME, "%s", c->address);
	}
}

static struct source *source_of(struct http_server *s, const struct connection *c)
{
	char name[SOURCE_NAME];
	struct source *o = NULL;

	name_source(c, name);
	HASH_FIND_STR(s->sources, name, o);
	if (!o) {
		o = mo_alloc(sizeof(*o));
		memcpy(o->name, name, sizeof(name));
		HASH_ADD_STR(s->sources, name, o);
	}
	return o;
}

int64_t guard_connections_max(int64_t configured)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
		return configured;
	return MO_MAX(MO_MIN(configured, (int64_t)files.rlim_cur - FILES_KEPT), 1);
}

static void no_stranger(struct connection *c)
{
	struct http_server *s = c->listener->server;

	if (!c->stranger)
		return;
	c->stranger = false;
	c->source->n_strangers--;
	s->n_strangers--;
	DL_DELETE2(s->strangers, c, older, newer);
	mo_assert(c->source->n_strangers >= 0 && s->n_strangers >= 0);
}

static void send_away(struct connection *c)
{
	no_stranger(c);
	c->listener->server->stats.cut++;
	shutdown(c->fd, SHUT_RDWR);
}

static bool source_is_full(const struct http_server *s, const struct source *o)
{
	return o->n_strangers > MO_MAX(s->max_connections / SOURCE_PART, SOURCE_LEAST);
}

/* Oldest stranger of the source; of anybody with NULL. */
static struct connection *oldest(const struct http_server *s, const struct source *of)
{
	struct connection *c;

	DL_FOREACH2(s->strangers, c, newer)
		if (!of || c->source == of)
			return c;
	return NULL;
}

static bool is_full(const struct http_server *s, const struct listener *l)
{
	return s->n_strangers > s->max_connections - s->max_connections / RESERVE_PART ||
	       l->n_connections > s->max_connections - s->max_connections / SPARE_PART ||
	       s->stats.connections > s->max_total - s->max_total / SPARE_PART;
}

void guard_arrived(struct connection *c)
{
	struct http_server *s = c->listener->server;
	struct source *o = source_of(s, c);
	struct connection *first;

	mo_assert(!c->source && !c->stranger);
	c->source = o;
	c->since_us = now_us();
	c->deadline_us = c->since_us + guard_patience(c);
	c->stranger = true;
	o->n_connections++;
	o->n_strangers++;
	s->n_strangers++;
	DL_APPEND2(s->strangers, c, older, newer);
	if (is_full(s, c->listener)) {
		first = oldest(s, source_is_full(s, o) ? o : NULL);
		if (first && first != c)
			send_away(first);
	} else if (source_is_full(s, o)) {
		first = oldest(s, o);
		if (first && c->since_us - first->since_us > GRACE_US)
			send_away(first);
	}
}

static void client_left(struct connection *c)
{
	struct client *k = c->client;

	c->client = NULL;
	if (!k)
		return;
	c->listener->n_users -= k->user;
	mo_assert(k->n_connections > 0 && c->listener->n_users >= 0);
	if (--k->n_connections > 0)
		return;
	HASH_DEL(c->listener->server->clients, k);
	free(k);
}

static struct client *client_of(struct http_server *s, const char *name, bool user)
{
	struct client *k = NULL;

	HASH_FIND_STR(s->clients, name, k);
	if (!k) {
		k = mo_alloc(sizeof(*k));
		snprintf(k->name, sizeof(k->name), "%s", name);
		k->user = user;
		HASH_ADD_STR(s->clients, name, k);
	}
	return k;
}

/* By what name the caller is counted; "" he is not. */
static void name_client(const struct http_caller *c, char ret[static CLIENT_NAME])
{
	bool named = c->user && *c->user;

	*ret = 0;
	if (c->role == ROLE_VIEWER || c->role == ROLE_USER)
		snprintf(ret, CLIENT_NAME, "%s %s", named ? "user" : "token",
			 named         ? c->user
			 : c->token_id ? c->token_id
				       : "?");
	else if (c->role == ROLE_AGENT && named)
		snprintf(ret, CLIENT_NAME, "node %s", c->user);
}

/* Why its user may not have one more; NULL: he may. Caller frees. */
static char *too_many(const struct http_request *r, const struct client *k)
{
	const struct http_server *s = r->server;
	const struct listener *l = r->connection->listener;
	int64_t most = k->user ? s->config.user_connections : s->config.node_connections;

	if (!most)
		return NULL;
	if (k->n_connections >= most)
		return mo_printf("%s has %lld connections, the most for one %s: close some",
				 k->name, (long long)most, k->user ? "user" : "node");
	if (k->user && l->n_users >= s->max_connections / USERS_PART)
		return mo_printf("users and viewers have %lld connections, the most for all of "
				 "them together: try again in a moment",
				 (long long)l->n_users);
	return NULL;
}

char *guard_accepted(struct http_request *r)
{
	struct connection *c = r->connection;
	char name[CLIENT_NAME];

	mo_assert(c && c->source);
	name_client(&r->caller, name);
	if (c->client && strcmp(c->client->name, name) != 0)
		client_left(c);
	if (*name && !c->client) {
		struct client *k = client_of(r->server, name, r->caller.role != ROLE_AGENT);

		char *why = too_many(r, k);

		if (why) {
			if (k->n_connections == 0) {
				HASH_DEL(r->server->clients, k);
				free(k);
			}
			return why;
		}
		c->client = k;
		k->n_connections++;
		c->listener->n_users += k->user;
	}
	r->client = c->client;
	no_stranger(c);
	c->deadline_us = now_us() + guard_patience(c);
	return NULL;
}

int64_t guard_patience(const struct connection *c)
{
	int64_t idle = c->listener->server->idle_us;

	mo_assert(idle > 0);
	return c->stranger || !c->source ? MO_MIN(idle, FIRST_US) : idle;
}

static bool forgettable(const struct source *o, int64_t now)
{
	return o->n_connections == 0 && o->wrong_until_us < now &&
	       o->reported_us + TELL_EVERY_US < now;
}

void guard_left(struct connection *c)
{
	struct http_server *s = c->listener->server;
	struct source *o = c->source;

	mo_assert(o && o->n_connections > 0);
	no_stranger(c);
	client_left(c);
	o->n_connections--;
	if (!forgettable(o, now_us()) && HASH_COUNT(s->sources) < SOURCES_MAX)
		return; /* the sweep forgets it */
	if (o->n_connections == 0) {
		HASH_DEL(s->sources, o);
		free(o);
	}
}

void guard_sweep(struct http_server *s, int64_t now)
{
	struct connection *c, *tmp;
	struct source *o, *o_tmp;

	DL_FOREACH(s->connections, c)
		if (c->deadline_us && c->deadline_us < now)
			shutdown(c->fd, SHUT_RDWR);
	DL_FOREACH_SAFE2(s->strangers, c, tmp, newer)
		if (source_is_full(s, c->source) && now - c->since_us > GRACE_US)
			send_away(c);
	HASH_ITER(hh, s->sources, o, o_tmp) {
		if (forgettable(o, now)) {
			HASH_DEL(s->sources, o);
			free(o);
		}
	}
}

void guard_done(struct http_server *s)
{
	struct source *o, *tmp;
	struct client *k, *k_tmp;

	HASH_ITER(hh, s->clients, k, k_tmp) {
		HASH_DEL(s->clients, k);
		free(k);
	}
	HASH_ITER(hh, s->sources, o, tmp) {
		HASH_DEL(s->sources, o);
		free(o);
	}
}

/* Once a minute of each source, and not of too many. */
static void tell(struct http_server *s, struct source *o, int64_t now)
{
	mo_assert(o->n_wrong > 0);
	if (!s->config.on_wrong || (o->reported_us && now - o->reported_us < TELL_EVERY_US))
		return;
	if (now - s->reported_us >= TELL_EVERY_US) {
		s->reported_us = now;
		s->n_reported = 0;
	}
	if (s->n_reported++ >= TELL_MOST)
		return;
	s->config.on_wrong(s->config.arg, o->name, o->n_wrong);
	o->reported_us = now;
	o->n_wrong = 0;
}

bool guard_wrong(struct http_request *r)
{
	struct http_server *s = r->server;
	struct source *o = r->connection->source;
	int64_t now = now_us();

	s->stats.wrong++;
	o->n_wrong++;
	tell(s, o, now);
	o->wrong_until_us = MO_MAX(o->wrong_until_us, now);
	if (o->wrong_until_us - now >= WRONG_BURST * (int64_t)WRONG_EVERY_US)
		return true;
	o->wrong_until_us += WRONG_EVERY_US;
	return false;
}
