/* The pump: runs libmicrohttpd, which works with its own epoll descriptor, watched level-triggered;
 * MHD_get_timeout is RELATIVE milliseconds. A resumed connection does not show in the epoll
 * descriptor: pump_later() runs MHD soon. */
#include <poll.h>
#include <time.h>
#include <utlist.h>
#include "lib/base/clock.h"
#include "lib/base/assert.h"
#include "lib/http/pump.h"

/* Then other sources of the loop get their chance; likewise after so much CPU time: one handler may
 * take ten times that, many must not do so in a row. */
#define PUMP_ROUNDS 8
#define PUMP_NS 5000000
/* MHD goes through all connections that are held whenever it resumes some: 12,500 of them cost as
 * much as several answers. */
#define RESUME_AT_ONCE 64
/* MHD accepts ten connections each time it runs: of thousands that come at once the last would wait
 * for as many turns of the loop, and give up before they were heard. */
#define ACCEPT_ROUNDS 16

void pump_later(struct http_server *s)
{
	sd_event_source_set_enabled(s->defer, SD_EVENT_ONESHOT);
}

bool pump_spent(const struct http_server *s)
{
	mo_assert(s->pump_began_ns >= 0);
	return mo_clock_thread_ns() - s->pump_began_ns > PUMP_NS;
}

void pump_wait(struct http_request *r)
{
	struct http_server *s = r->server;
	struct http_request *before = s->waiting ? s->waiting->prev : NULL; /* the last */

	mo_assert(!r->waits);
	if (!r->waited) {
		r->turn = r->client ? MO_MAX(r->client->turn, s->turn) : s->turn;
		if (r->client)
			r->client->turn = r->turn + 1;
	}
	while (before && before->turn > r->turn)
		before = before == s->waiting ? NULL : before->prev;
	if (before)
		DL_APPEND_ELEM(s->waiting, before, r);
	else
		DL_PREPEND(s->waiting, r);
	r->waits = r->waited = r->suspended = true;
	MHD_suspend_connection(r->mhd);
	pump_later(s);
}

/* MHD asks for them again, and then they run, unless those before them took too long. Of one turn
 * alone: MHD goes through those that it may go on with in an order of its own. */
static void resume_turn(struct http_server *s)
{
	struct http_request *r;

	mo_assert(s->waiting);
	s->turn = MO_MAX(s->turn, s->waiting->turn);
	for (size_t n = 0; n < RESUME_AT_ONCE && (r = s->waiting) && r->turn <= s->turn; n++) {
		DL_DELETE(s->waiting, r);
		r->resumed = true;
		s->n_resumed++;
		r->waits = r->suspended = false;
		MHD_resume_connection(r->mhd);
	}
}

static void run_both(struct http_server *s)
{
	if (s->tcp.mhd)
		MHD_run(s->tcp.mhd);
	if (s->local.mhd)
		MHD_run(s->local.mhd);
}

static bool more_arrive(const struct listener *l)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_LISTEN_FD);
	struct pollfd p = { .fd = info->listen_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

static void pump(struct http_server *s)
{
	struct listener *all[] = { &s->tcp, &s->local };
	MHD_UNSIGNED_LONG_LONG ms, least = UINT64_MAX;

	s->pump_began_ns = mo_clock_thread_ns();
	for (int i = 0; s->waiting && i < PUMP_ROUNDS && !pump_spent(s); i++) {
		resume_turn(s);
		run_both(s);
	}
	for (size_t i = 0; i < ELEMENTSOF(all); i++) {
		if (!all[i]->mhd)
			continue;
		for (int n = 0; n < ACCEPT_ROUNDS && more_arrive(all[i]); n++)
			MHD_run(all[i]->mhd);
		int rounds = 0;
		enum MHD_Result known;
		do {
			MHD_run(all[i]->mhd);
			known = MHD_get_timeout(all[i]->mhd, &ms);
		} while (known == MHD_YES && ms == 0 && ++rounds < PUMP_ROUNDS && !pump_spent(s));
		if (known == MHD_YES)
			least = MO_MIN(least, ms);
	}
	if (least == 0 || s->waiting) {
		pump_later(s);
	} else if (least == UINT64_MAX) {
		sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	} else {
		sd_event_source_set_time_relative(s->timer, least * 1000);
		sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
	}
}

static int on_io(sd_event_source *e, int fd, uint32_t revents, void *userdata)
{
	pump(userdata);
	return 0;
}

static int on_defer(sd_event_source *e, void *userdata)
{
	pump(userdata);
	return 0;
}

static int on_timer(sd_event_source *e, uint64_t usec, void *userdata)
{
	pump(userdata);
	return 0;
}

int pump_begin(struct http_server *s)
{
	int r = sd_event_add_defer(s->loop, &s->defer, on_defer, s);

	if (r >= 0)
		r = sd_event_source_set_enabled(s->defer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time(s->loop, &s->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000,
				      on_timer, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	return r;
}

int pump_watch(struct http_server *s, struct listener *l)
{
	const union MHD_DaemonInfo *epoll = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);

	return sd_event_add_io(s->loop, &l->io, epoll->epoll_fd, EPOLLIN, on_io, s);
}

void pump_all(struct http_server *s)
{
	while (s->waiting)
		resume_turn(s);
	if (s->defer)
		pump(s);
}

void pump_end(struct http_server *s)
{
	sd_event_source_disable_unref(s->defer);
	sd_event_source_disable_unref(s->timer);
}
