/* Who may come in. When thousands come at once (the hellos of a cluster whose power is back), work
 * for all of them would be done in the order of their coming, so late that each of them has given
 * up by then and has come again: nobody is ever served. So of a route with a `most` only so many
 * may wait for their answer. Whoever comes then is told by his head already when to come again:
 * one after the other at the pace of the answers, so that most come only once more. Counted from
 * the end of the body to the answer: who sends slowly, or does not read, takes nobody's place. */
#include "lib/http/door.h"
#include <poll.h>
#include "lib/base/assert.h"
#include "lib/base/clock.h"

#define PACE_FIRST_NS 500000
#define PACE_MOST_US 1000000     /* many are answered together, after a sync of the store */
#define PACE_OF 256              /* answers that the mean is of, about: many leave at once */
#define AGAIN_MOST_US 10000000LL /* nobody waits longer for a hello (docs/protocol.md) */

static int64_t now_us(void)
{
	return mo_clock_mono_ns() / 1000;
}

static struct door *door_of(const struct http_request *r)
{
	mo_assert(r->route);
	return &r->server->doors[r->route - r->server->config.routes];
}

void doors_new(struct http_server *s)
{
	s->doors = mo_alloc_array(s->config.n_routes, sizeof(*s->doors));
	for (size_t i = 0; i < s->config.n_routes; i++)
		s->doors[i].pace_ns = PACE_FIRST_NS;
}

/* Takes the next place that is free, in time. */
static int64_t again_s(struct door *d)
{
	int64_t now = now_us();

	d->room_us = MO_MIN(MO_MAX(d->room_us, now) + d->pace_ns / 1000, now + AGAIN_MOST_US);
	return (d->room_us - now + 999999) / 1000000;
}

bool door_open(struct http_request *r)
{
	struct door *d = door_of(r);

	if (!r->route->most || d->inside < r->route->most)
		return true;
	http_problem_later(r, 503, again_s(d),
			   "%lld of these wait for their answer already: try again later",
			   (long long)d->inside);
	return false;
}

void door_enter(struct http_request *r)
{
	if (r->inside || r->answered || !r->route)
		return;
	r->inside = true;
	door_of(r)->inside++;
}

/* Of a crowd alone: where two come now and then, each waits for a sync of its own, and that would
 * be the pace. */
static void keep_pace(struct door *d, int64_t most)
{
	int64_t now = now_us(), took = MO_MIN(now - d->left_us, PACE_MOST_US);
	bool crowded = d->inside >= most / 2;

	if (d->left_us && crowded)
		d->pace_ns += (took * 1000 - d->pace_ns) / PACE_OF;
	d->left_us = crowded ? now : 0;
}

void door_leave(struct http_request *r)
{
	struct door *d;

	if (!r->inside)
		return;
	d = door_of(r);
	r->inside = false;
	d->inside--;
	mo_assert(d->inside >= 0);
	if (r->route->most)
		keep_pace(d, r->route->most);
}

/* Of agents alone: they never close one half only, as others may who wait for an answer. */
bool door_left_behind(const struct http_request *r)
{
	struct pollfd p = { .fd = r->connection->fd, .events = POLLRDHUP };

	return (r->waited || (r->route && r->route->most)) && r->caller.role == ROLE_AGENT &&
	       poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}
